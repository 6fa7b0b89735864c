/** Where a thread stands, for a browser and for Slack's own apps. */
export function threadLink(workspaceUrl: string, channel: string, thread: string): string {
  return new URL(`archives/${channel}/p${thread.replace('.', '')}`, workspaceUrl).href;
}
