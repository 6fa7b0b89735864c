/** Faults and remediations that real controllers over a simulated disk cannot be brought to, each with its reason. */
export const notProvokable: Readonly<Record<string, string>> = {};

/** Scenarios that are still being written; empty when the suite is whole. */
export const notYet: readonly string[] = [
  'attach-failed',
  'attached-outside-kubernetes',
  'attacher-backlog',
  'attachment-stale',
  'attachment-untrue',
  'attachment-volume-missing',
  'detach-failed',
  'detach-failed-node-gone',
  'double-attachment',
  'local-volume-node-gone',
  'multi-attach-live-node',
  'multi-attach-node-gone',
  'out-of-service-taint-left',
  'rollout-deadlock',
  'rwop-conflict',
  'statefulset-halted',
  'unmount-stuck',
  'volume-limit-reached',
  'delete-attachment',
  'remove-out-of-service-taint',
  'set-recreate-strategy',
];
