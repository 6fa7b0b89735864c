import { getCommand, groupsOf, nameOf, patchCommand, some, waitByHand, withCount } from '../domain/claim.ts';
import { type Cluster, couldNotRead } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Ref } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import {
  isInfeasible,
  lowerSizeOf,
  type Resize,
  type ResizeReason,
  resizeEvidence,
  resizeGraceLeft,
  resizersOf,
  resizesOf,
  saysOffline,
} from '../domain/resize.ts';
import type { Scope } from '../domain/scope.ts';
import { saysForbidden } from '../domain/snapshot.ts';
import { duration } from '../domain/time.ts';
import { lowerResizeRequest } from '../remediations/lower-resize-request.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly reason: ResizeReason;
  readonly canLower: boolean;
  readonly since: string | undefined;
  readonly error: string | undefined;
  readonly isProgress: boolean;
}

/** A claim asks for more than it has, and the driver, the backend or the node does not give it (F25). */
export const resizeFailed = defineFault<'resize-failed', Facts>({
  id: 'resize-failed',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'pods'],
  uses: ['events', 'volumeattachments', 'csidrivers', 'deployments', 'statefulsets', 'leases'],
  words: {
    summary: (f) => {
      const grow = f.claims.length === 1 ? `does not grow from ${f.from} to ${f.to}` : 'do not grow';
      return f.isProgress
        ? `${some(f.claims, 'Claim')} ${f.claims.length === 1 ? 'is' : 'are'} being resized from ${f.from} to ${f.to}.`
        : `${some(f.claims, 'Claim')} ${grow}: ${inWords[f.reason]}.`;
    },
    explanation: (f) => {
      if (f.isProgress) return 'The resize has begun only a short time ago; the controllers try again by themselves.';
      const since = f.since === undefined ? '' : ` The resize has been open for ${f.since}.`;
      const error = f.error === undefined ? '' : ` The answer was: ${f.error}.`;
      const lower = f.canLower ? ' The request can be lowered to anything above the present capacity.' : '';
      return `${meaning[f.reason]}${lower}${since}${error} The pods go on with the size that they have; no data is in danger unless the volume runs full.`;
    },
  },
  doc: {
    meaning:
      'The request of a bound claim is larger than `status.capacity` for more than five minutes, and what should enlarge the volume is refused or does not answer.',
    impact:
      'None as long as the old size is enough. When the volume runs full, the workload fails. Volumes never shrink, so a request that was a slip stays until it is lowered to something above the present capacity.',
    diagnosis:
      'Compare `spec.resources.requests`, `status.capacity` and the capacity of the volume; look at `status.allocatedResourceStatuses` and at the conditions by their type (`Unused`, since 1.37 on every bound claim, is none of a resize). Warnings of an earlier resize mean nothing when the sizes agree. `quota`, `rate-limit`, `infeasible`, `node`, `backend`: what the error says; `unknown`: nothing is said any more.',
    mitigation:
      'Raise the quota, wait until the rate limit is over (six hours on some clouds) and keep an autoscaler from raising the request meanwhile, or repair driver and node: the resize is tried again by itself. When the status is Infeasible, lower the request to a size above the present capacity. Deleting and making the claim again, a common advice, costs the data; restarting the pod helps only where the node is what is waited for.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const open = resizesOf(cluster, scope).filter(({ waitsFor }) => waitsFor === 'controller' || waitsFor === 'node');
    const why = cluster.whyUnread('volumeattachments');
    const isBlind = ({ users, error }: Resize) => why !== undefined && users.length > 0 && saysOffline(error?.text);
    const failed = open.filter((resize) => !isBlind(resize));
    for (const group of groupsOf(failed, groupKey)) yield toFinding(group, cluster);
    // Whether the driver only waits for the detach cannot be told then.
    if (open.some(isBlind)) throw new Refused(couldNotRead('volumeattachments', why));
  },
});

const inWords: Readonly<Record<ResizeReason, string>> = {
  quota: 'a quota is used up',
  'rate-limit': 'the backend limits how often a volume may be changed',
  infeasible: 'the driver says that this size cannot be',
  node: 'the node has not enlarged the file system',
  backend: 'the storage backend refuses',
  unknown: 'why is not known',
};

const meaning: Readonly<Record<ResizeReason, string>> = {
  quota:
    'The backend has no quota left for the difference. It is tried again by itself, and succeeds when there is room.',
  'rate-limit':
    'The backend takes only so many changes of a volume in a time. Nothing is broken; it succeeds by itself when that time is over, unless the request is raised again meanwhile.',
  infeasible: 'The driver refuses this size for good, so trying again does not help.',
  node: 'The volume itself has its new size; what is missing is the part of the node, which enlarges the file system.',
  backend: 'The driver was asked and failed. It is tried again by itself, with growing pauses.',
  unknown: 'Nothing that was read says why: neither a condition nor an event.',
};

/** The same answer from the same driver, or by the same node, is one trouble. */
function groupKey(resize: Resize): string {
  const isProgress = resizeGraceLeft(resize) !== undefined;
  const where = resize.waitsFor === 'node' ? resize.users.map(({ nodeName }) => nodeName ?? '').toSorted() : [];
  return [isProgress ? 'progress' : 'found', resize.reason, resize.driver ?? '', ...where].join('\n');
}

function toFinding(group: readonly [Resize, ...Resize[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = group;
  const left = group.flatMap((resize) => resizeGraceLeft(resize) ?? []);
  const isProgress = left.length > 0;
  const pods = [...new Set(group.flatMap(({ users, waiting }) => [...users, ...waiting]))];
  return {
    subject: first.claim.ref,
    involved: [
      ...group.map(({ claim }) => claim.ref),
      ...group.map(({ volume }) => volume.ref),
      ...pods.map(({ ref }) => ref),
      ...resizersOf(first.driver, cluster),
    ],
    affected: group.map(({ claim }) => claim.ref),
    restsOn: [
      ...resizersOf(first.driver, cluster),
      ...group.flatMap((resize) => heldUpBy(resize, cluster)),
      ...(saysForbidden(first.error?.text) ? [first.claim.ref] : []),
    ],
    reason: first.reason,
    facts: {
      claims: group.map(({ claim }) => nameOf(claim)),
      from: first.claim.capacity ?? '',
      to: first.claim.requested ?? '',
      reason: first.reason,
      canLower: isInfeasible(first.claim),
      since: first.ageMs === undefined ? undefined : duration(first.ageMs),
      error: first.error?.text,
      isProgress,
    },
    evidence: evidenceOf(group),
    progressSeconds: isProgress ? Math.max(...left) / 1000 : undefined,
    offers: group.slice(0, 20).flatMap(offersFor),
    manual: isProgress ? waitByHand : manualFor(first),
  };
}

/** Whose trouble would explain it: the node's part waits for the pod, and a driver that works offline for the attachment. */
function heldUpBy({ waitsFor, users, waiting, volume, error }: Resize, cluster: Cluster): readonly Ref[] {
  return [
    ...(waitsFor === 'node' ? [...users, ...waiting].map(({ ref }) => ref) : []),
    ...(waitsFor === 'node' || saysOffline(error?.text)
      ? cluster.attachmentsOfVolume(volume.name).map(({ ref }) => ref)
      : []),
  ];
}

function offersFor({ claim }: Resize): readonly OfferDraft[] {
  const to = isInfeasible(claim) ? lowerSizeOf(claim) : undefined;
  if (to === undefined) return [];
  return [lowerResizeRequest.offer({ namespace: claim.namespace ?? '', name: claim.name, uid: claim.uid, to })];
}

function evidenceOf(group: readonly [Resize, ...Resize[]]): readonly Evidence[] {
  const [first] = group;
  return [
    ...resizeEvidence(first),
    ...(group.length === 1
      ? []
      : withCount(
          first.claim,
          'claims',
          group
            .slice(1)
            .map(({ claim }) =>
              fact(
                claim,
                'status.capacity.storage',
                claim.capacity,
                `${claim.requested ?? ''} was asked for, with the same answer`,
              ),
            ),
          'more claims get the same answer',
        )),
  ];
}

function manualFor({ claim, reason, users, waitsFor }: Resize): readonly ManualStep[] {
  const steps: ManualStep[] = [{ says: 'See how far the resize has come.', command: getCommand('pvc', claim) }];
  const to = isInfeasible(claim) ? lowerSizeOf(claim) : undefined;
  if (reason === 'quota')
    steps.push({ says: 'Raise the quota of the backend, or free some of it; the resize goes on by itself.' });
  if (reason === 'rate-limit')
    steps.push({
      says: 'Wait until the time that the error names is over, and keep autoscalers from raising the request meanwhile: each change counts anew.',
    });
  if (reason === 'backend')
    steps.push({
      says: 'Mend what the error names in the backend or the driver; the resize is tried again by itself.',
    });
  if (waitsFor === 'node') {
    steps.push({
      says: `Look at the kubelet and the node part of the driver on ${[...new Set(users.map(({ nodeName }) => nodeName ?? ''))].join(', ')}: the volume has its new size, and only the file system there is left. A restart of the pod in an agreed window makes kubelet try again.`,
    });
  }
  if (to !== undefined) {
    steps.push({
      says: `If the size was a slip, or cannot be had, lower the request to a size above the present ${claim.capacity ?? 'capacity'}. Volumes never shrink below it.`,
      command: patchCommand('pvc', claim, [
        { op: 'test', path: '/metadata/uid', value: claim.uid },
        { op: 'test', path: '/spec/resources/requests/storage', value: claim.requested ?? '' },
        { op: 'replace', path: '/spec/resources/requests/storage', value: to },
      ]),
    });
  }
  return steps;
}
