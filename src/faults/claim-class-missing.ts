import { staleVolumesFor } from '../domain/binding.ts';
import {
  classesEvidence,
  FRESH_MS,
  freeVolumes,
  groupsOf,
  hasNearFit,
  isNearName,
  isPendingFor,
  missingClass,
  nameOf,
  shellWord,
  some,
  unscheduledUsers,
  usableClasses,
  withCount,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Claim } from '../domain/objects.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';
import { recreatePendingClaim } from '../remediations/recreate-pending-claim.ts';

interface Facts {
  readonly claims: readonly string[];
  /** Empty: the claim asks for a static volume without a class. */
  readonly className: string;
  readonly waitedFor: string;
  readonly near: readonly string[];
}

/**
 * A claim names a class that does not exist, or asks with `""` for a volume without a class and there is none. A default
 * class never helps a claim that names one, and `""` is a name (facts §1.2, F18).
 */
export const claimClassMissing = defineFault<'claim-class-missing', Facts>({
  id: 'claim-class-missing',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses'],
  uses: ['pods'],
  words: {
    summary: (f) =>
      f.className === ''
        ? `${some(f.claims, 'Claim')} asks for a volume without a class (storageClassName ""), and none is Available.`
        : `${some(f.claims, 'Claim')} ${f.claims.length === 1 ? 'asks' : 'ask'} for the class ${f.className}, which does not exist.`,
    explanation: (f) => {
      const wait = `Pending for ${f.waitedFor}; nothing will be provisioned.`;
      if (f.className === '')
        return `${wait} The empty name switches dynamic provisioning off for this claim, and the default class is not applied to it either. Only a classless volume made by hand would bind.`;
      const near = f.near.length > 0 ? ` Nearly the same name: ${f.near.join(', ')}.` : '';
      return `${wait} Making another class the default does not help a claim that names one.${near}`;
    },
  },
  doc: {
    meaning:
      'The claim is Pending because the class that it names does not exist. With `storageClassName: ""` it wants a static volume without a class, and there is none.',
    impact: 'Pods that need the claim are not scheduled. Nothing is lost.',
    diagnosis:
      'Compare `spec.storageClassName` with `kubectl get storageclass`. A class called `default` is not the default class, and `""` is not the same as leaving the field out. A claim that is Bound needs no class object.',
    mitigation:
      'Make the claim again with a class that exists, and correct the chart, operator or StatefulSet template that wrote it; or make the class under the wanted name when several manifests expect it. The field cannot be patched once it is set, and marking a default class has no effect here.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const missing = scope.claims.filter(
      (claim) =>
        isPendingFor(claim, FRESH_MS, cluster.now) &&
        isClassMissing(claim, cluster) &&
        !hasNearFit(claim, cluster) &&
        staleVolumesFor(claim, cluster).length === 0,
    );
    for (const group of groupsOf(missing, (claim) => claim.className || `\n${nameOf(claim)}`))
      yield toFinding(group, cluster);
  },
});

function isClassMissing(claim: Claim, cluster: Cluster): boolean {
  if (claim.className === undefined) return false;
  if (claim.className !== '') return cluster.findClass(claim.className) === undefined;
  return !freeVolumes(claim, cluster).some((volume) => volume.className === '');
}

function toFinding(group: readonly [Claim, ...Claim[]], cluster: Cluster): FindingDraft<Facts> {
  const [claim] = group;
  const className = claim.className ?? '';
  const waiting = group.flatMap((item) => unscheduledUsers(item, cluster));
  const classes = usableClasses(className, cluster);
  const classRef = className === '' ? [] : [missingRef('StorageClass', null, className)];
  return {
    subject: claim.ref,
    involved: [claim.ref, ...classRef, ...group.map((item) => item.ref), ...waiting.map((pod) => pod.ref)],
    affected: [
      ...group.map((item) => item.ref),
      ...waiting.map((pod) => pod.ref),
      ...waiting.flatMap((pod) => cluster.workloadOf(pod) ?? []),
    ],
    facts: {
      claims: group.map(nameOf),
      className,
      waitedFor: duration(Math.max(...group.map((item) => cluster.now - item.createdAt))),
      near: classes.filter((item) => isNearName(item.name, className)).map((item) => item.name),
    },
    evidence: [
      ...withCount(
        claim,
        'claims',
        group.map((item) =>
          fact(item, 'status.phase', item.phase, `waiting for ${duration(cluster.now - item.createdAt)}`),
        ),
        'claims name the class',
      ),
      classesEvidence(
        claim,
        cluster,
        className === '' ? 'the empty name means static volumes only' : 'the class that it names is not there',
      ),
      ...(className === '' ? [] : [missingClass(className)]),
    ],
    offers: group.slice(0, 20).flatMap((item) =>
      classes.slice(0, 3).map((choice) =>
        recreatePendingClaim.offer({
          namespace: item.namespace ?? '',
          name: item.name,
          uid: item.uid,
          storageClass: choice.name,
        }),
      ),
    ),
    manual: [
      { says: 'See which classes there are, and which is the default.', command: 'kubectl get storageclass' },
      {
        says: 'Correct the name where the claim is written: chart values, operator resource, volumeClaimTemplates. Otherwise it comes back.',
      },
      ...(className === ''
        ? [
            {
              says: 'If a static volume was meant, make a PersistentVolume without a class that fits the claim in size and access modes.',
            },
          ]
        : [
            {
              says: `If several manifests expect the name, make a class called ${className} with the parameters of the one that was meant. Claims that wait for it are then served.`,
              command: `kubectl get storageclass ${classes[0] ? `${shellWord(classes[0].name)} ` : ''}-o yaml`,
            },
          ]),
    ],
  };
}
