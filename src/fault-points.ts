/**
 * Named points of the step protocol at which a test may end or freeze the process. They are always compiled in and do
 * nothing unless `K8S_STORAGE_FAULTS` names one, which is read only with NODE_ENV=test.
 */
export const faultPoints = [
  'executor.before_claim',
  'executor.after_claim',
  'executor.in_intent',
  'executor.after_intent',
  'executor.request_sent',
  'executor.after_reply',
  'executor.in_outcome',
  'executor.after_outcome',
  'executor.before_finish',
  'executor.after_finish',
  'intake.before_commit',
  'intake.after_commit',
] as const;
export type FaultPoint = (typeof faultPoints)[number];

export type FaultHook = (point: FaultPoint) => void;

export const noFaults: FaultHook = () => {};

/**
 * Parses `POINT[:N]=kill|stop`: the N-th time (1 when left out) that the point is passed, the process gets SIGKILL or
 * SIGSTOP. Throws when the text names no such point, so that a test cannot pass by a typing error.
 */
export function faultHook(text: string, signal: (name: 'SIGKILL' | 'SIGSTOP') => void): FaultHook {
  const match = /^([a-z_.]+)(?::(\d+))?=(kill|stop)$/.exec(text);
  const wanted = faultPoints.find((point) => point === match?.[1]);
  if (!match || !wanted)
    throw new Error(
      `K8S_STORAGE_FAULTS is ${text}; write POINT[:N]=kill or =stop with a point of ${faultPoints.join(', ')}`,
    );
  let left = Number(match[2] ?? 1);
  return (point) => {
    if (point !== wanted) return;
    left -= 1;
    if (left === 0) signal(match[3] === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  };
}
