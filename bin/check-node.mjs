// Plain JavaScript that any Node runs: says in one clear line when the Node at hand is too old, before anything else is
// loaded. On Linux x64 the install brings Node 24 itself and npm scripts use it; elsewhere the user's own Node serves.

export const LEAST = [22, 19];

/** The line to print for a Node version such as `20.11.1`; undefined when it is new enough. */
export function whyTooOld(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1])) return undefined;
  return `k8s-storage-bot needs Node ${LEAST.join('.')} or newer and this is ${version}. Install Node 24 from your package manager and run npm ci again.`;
}

/** Ends the process with exit code 78 when Node is too old. */
export function checkNode() {
  const line = whyTooOld(process.versions.node);
  if (line === undefined) return;
  process.stderr.write(`${line}\n`);
  process.exit(78);
}
