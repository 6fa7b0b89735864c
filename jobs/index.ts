import type { Deps } from '../src/deps.ts';
import { absurd } from '../src/domain/errors.ts';
import type { JobKind, JobRef } from '../src/ports.ts';
import { remediate } from '../src/remediate.ts';
import { foldAlerts } from './alert.ts';
import { diagnose } from './diagnose.ts';
import { intake } from './intake.ts';
import { showList } from './list.ts';
import { refresh } from './refresh.ts';
import { scan } from './scan.ts';

/** What a worker does for one kind of wake-up. A failure is logged; the row is still due, so the sweep comes back to it. */
export function runJob(
  kind: JobKind,
  deps: Deps,
  ended: (kind: JobKind, outcome: 'done' | 'failed') => void,
): (job: JobRef, signal: AbortSignal) => Promise<void> {
  return async (job, signal) => {
    try {
      await run(kind, job.id, deps, signal);
      ended(kind, 'done');
    } catch (error) {
      ended(kind, 'failed');
      deps.log.warn('job failed, the sweep comes back to it', {
        kind,
        id: job.id,
        reason: error instanceof Error ? error.message : String(error),
      });
    }
  };
}

function run(kind: JobKind, id: string, deps: Deps, signal: AbortSignal): Promise<void> {
  switch (kind) {
    case 'intake':
      return intake(id, deps, signal);
    case 'alert':
      return foldAlerts(deps, signal);
    case 'diagnose':
      return diagnose(id, deps, signal);
    case 'refresh':
      return refresh(id, deps, signal);
    case 'list':
      return showList(id, deps, signal);
    case 'scan':
      return scan(id, deps, signal);
    case 'remediate':
      return remediate(id, { ...deps, remediations: deps.catalogue.remediations }, signal);
    default:
      return absurd(kind);
  }
}
