import { isDelayed, sufferersOf } from '../domain/binding.ts';
import { FRESH_MS, getCommand, groupsOf, nameOf, SELECTED_NODE, shellWord, some, waitByHand } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { sidecarsOfDriver } from '../domain/csi.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import {
  type Failure,
  failureOf,
  isGhostOfKey,
  keyParameterOf,
  type ProvisioningReason,
  secretOf,
} from '../domain/provisioning.ts';
import { refusalsOf } from '../domain/rbac.ts';
import type { Ref } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';
import { recreatePendingClaim } from '../remediations/recreate-pending-claim.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly className: string;
  readonly provisioner: string;
  readonly reason: ProvisioningReason;
  readonly waitedFor: string;
  readonly error: string | undefined;
  readonly hasAfterEffect: boolean;
  readonly secret: string | undefined;
  readonly source: string | undefined;
  readonly requested: string;
  readonly needed: string | undefined;
  readonly mode: string;
  readonly sourceMode: 'Block' | 'Filesystem' | undefined;
  /** The class's parameter with an encryption key, when the volume vanished right after it was made. */
  readonly ghostKey: string | undefined;
  readonly isProgress: boolean;
}

const SILENCE_MS = minutes(5);

/**
 * A provisioner was asked for a volume and does not make it. It tries again for ever; the first error of the series
 * explains, later ones often only say that the first request is still there (F19).
 */
export const claimProvisioningFailed = defineFault<'claim-provisioning-failed', Facts>({
  id: 'claim-provisioning-failed',
  severity: 'warning',
  rank: 7,
  needs: [
    'persistentvolumeclaims',
    'persistentvolumes',
    'storageclasses',
    'nodes',
    'pods',
    'csidrivers',
    'csinodes',
    'leases',
    'deployments',
    'statefulsets',
  ],
  uses: [
    'events',
    'volumesnapshots',
    'volumesnapshotcontents',
    'daemonsets',
    'clusterroles',
    'clusterrolebindings',
    'roles',
    'rolebindings',
  ],
  words: {
    summary: (f) => {
      if (f.isProgress) return `The volume of ${some(f.claims, 'claim')} is being made by ${f.provisioner}.`;
      if (f.reason === 'source-size')
        return `${some(f.claims, 'Claim')} asks for ${f.requested}, less than ${f.needed ?? 'the size'} of its source ${f.source ?? ''}.`;
      if (f.reason === 'volume-mode')
        return `${some(f.claims, 'Claim')} asks for volume mode ${f.mode}, and its source ${f.source ?? ''} is ${f.sourceMode ?? 'of the other mode'}.`;
      return `${f.provisioner} does not make the volume of ${some(f.claims, 'claim')} (class ${f.className}): ${because[f.reason]}.`;
    },
    explanation: (f) => {
      if (f.isProgress) return `Asked for ${f.waitedFor} ago, and nothing speaks against it yet.`;
      return [
        `Pending for ${f.waitedFor}.`,
        ...(f.error === undefined ? [] : [`The first error was: ${f.error}.`]),
        ...(f.hasAfterEffect
          ? ['Later errors about a request that exists already, or with other parameters, only follow from that one.']
          : []),
        ...(f.ghostKey === undefined
          ? []
          : [
              `The volume was gone right after it was made, and the class uses a key of its own (${f.ghostKey}): most likely the driver's role may not use that key. Nobody deleted a disk.`,
            ]),
        ...(f.secret === undefined ? [] : [`The class names the Secret ${f.secret}.`]),
        means[f.reason],
      ].join(' ');
    },
  },
  doc: {
    meaning:
      'The claim is Pending, its provisioner was asked (`volume.kubernetes.io/storage-provisioner`, and with WaitForFirstConsumer a node was selected), and no volume was made.',
    impact: 'Pods that need the claim do not start. There is no volume yet, so no data is at risk.',
    diagnosis:
      'Read the `ProvisioningFailed` events of the claim from the first one on: `operation already exists` and `parameters are inconsistent` are only what follows. `not authorized` or 403 from the backend is about the cloud role of the driver, not about Kubernetes RBAC. `verify that the provisioner is running` is printed for every claim that waits and says nothing. Without any event the reason is not known: events live for an hour.',
    mitigation:
      'Remove the cause; the provisioner tries again by itself, after `InvalidArgument` only after a while. Make the claim again only where its own fields are wrong: below the size of its source, or in another volume mode. A CreateVolume call that is still under way leaves a volume behind when its claim is deleted. Restarting the controller, the common advice, changes none of these reasons.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const asked = scope.claims.flatMap((claim) => failureOf(claim, cluster) ?? []);
    if (asked.length === 0) return;
    const refused = new Set(refusalsOf(cluster, scope).map(({ complaint }) => complaint.object.uid));
    const failures = asked.filter(({ claim }) => !refused.has(claim.uid));
    for (const group of groupsOf(failures, keyOf)) yield toFinding(group, cluster);
  },
});

const because: Readonly<Record<ProvisioningReason, string>> = {
  quota: 'a limit of the storage backend or the provider is reached',
  permission: 'the backend does not allow the driver to do it',
  secret: 'a Secret that the class names is missing or unusable',
  parameters: 'the backend or the driver refuses what was asked for',
  'source-size': 'the claim is smaller than its source',
  'volume-mode': 'the volume mode is not that of its source',
  topology: 'no volume can be made for the node or zone that was asked for',
  backend: 'the backend failed',
  'no-answer': 'no answer comes',
  unknown: 'the reason is not known any more',
};

const means: Readonly<Record<ProvisioningReason, string>> = {
  quota: 'When there is room again, or the limit is raised, the provisioner makes the volume by itself.',
  permission:
    "This is the backend's own right (a cloud role, an account, a key policy), not a Kubernetes role; no RBAC change helps.",
  secret: 'Once the Secret is right, the provisioner goes on by itself.',
  parameters: 'It tries again for ever with the same request, so it fails until class or claim ask for something else.',
  'source-size': 'A volume cannot be smaller than what it is made from. The source is all right.',
  'volume-mode': 'The content would be read in another way than it was written, which its owner must allow first.',
  topology: 'The place was chosen by the scheduler or by the class; compare it with where the driver runs.',
  backend: 'The provisioner tries again by itself; look at the storage backend and at the log of the driver.',
  'no-answer':
    'The driver is installed and no answer arrives: the backend is slow or out of reach. A volume may still be in the making.',
  unknown: 'Events live for an hour only; the log of the csi-provisioner has the errors.',
};

/** What differs from claim to claim stands alone; else claims of one class that fail for one reason are one trouble. */
function keyOf(failure: Failure): string {
  const { claim, reason, provisioner, error } = failure;
  const isOwn = reason === 'source-size' || reason === 'volume-mode' || reason === 'unknown';
  const text = reason === 'parameters' ? plainOf(error?.message ?? '') : '';
  const secret = reason === 'secret' ? (secretOf(failure)?.name ?? '') : '';
  return JSON.stringify([
    provisioner,
    claim.className ?? '',
    reason,
    leftMs(failure) !== undefined,
    isOwn ? claim.uid : '',
    text,
    secret,
  ]);
}

/** A text without the names and numbers in it. */
function plainOf(message: string): string {
  return message.replaceAll(/"[^"]*"|'[^']*'|[0-9a-f-]{8,}|\d+/g, '_');
}

/** How much time it still has; undefined when that is over. */
function leftMs({ askedMs, error }: Failure): number | undefined {
  const left = (error ? FRESH_MS : SILENCE_MS) - askedMs;
  return left >= 0 ? left : undefined;
}

function toFinding(group: readonly [Failure, ...Failure[]], cluster: Cluster): FindingDraft<Facts> {
  const [failure] = group;
  const { claim, reason, source, error } = failure;
  const claims = group.map((one) => one.claim);
  const left = group.map(leftMs).reduce((a, b) => (a === undefined || b === undefined ? undefined : Math.min(a, b)));
  const secret = reason === 'secret' ? secretOf(failure) : undefined;
  const needsSource = reason === 'source-size' || reason === 'volume-mode';
  const parameters = failure.class?.parameters ?? {};
  return {
    subject: claim.ref,
    involved: [
      claim.ref,
      ...(failure.class ? [failure.class.ref] : []),
      ...(secret ? [secret] : []),
      ...(source ? [source] : []),
      ...claims.map((one) => one.ref),
    ],
    affected: sufferersOf(claims, cluster),
    restsOn: [...claims.map((one) => one.ref), ...(source ? [source] : [])],
    ...(left === undefined ? { reason } : {}),
    facts: {
      claims: claims.map(nameOf),
      className: claim.className ?? 'by default',
      provisioner: failure.provisioner,
      reason,
      waitedFor: duration(Math.max(...group.map((one) => one.askedMs))),
      error: needsSource ? undefined : error && shortened(error.message),
      hasAfterEffect: failure.afterEffect !== undefined,
      secret: secret && `${secret.namespace ?? ''}/${secret.name}`,
      source: source && `${source.kind} ${source.name}`,
      requested: claim.requested ?? 'a size that is not said',
      needed: failure.sourceBytes === undefined ? undefined : quantityOf(failure.sourceBytes),
      mode: claim.volumeMode,
      sourceMode: failure.sourceMode,
      ghostKey: error && isGhostOfKey(error.message, parameters) ? keyParameterOf(parameters) : undefined,
      isProgress: left !== undefined,
    },
    evidence: evidenceOf(group, secret, cluster),
    progressSeconds: left === undefined ? undefined : left / 1000,
    offers: group.slice(0, 20).flatMap(offersOf),
    manual: left === undefined ? byHand(failure, secret, cluster) : waitByHand,
  };
}

function shortened(message: string): string {
  const text = message.replaceAll(/\s+/g, ' ').replace(/[.\s]+$/, '');
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function evidenceOf(
  group: readonly [Failure, ...Failure[]],
  secret: Ref | undefined,
  cluster: Cluster,
): readonly Evidence[] {
  const [failure] = group;
  const { claim, error, afterEffect, sourceBytes, sourceMode, source } = failure;
  const node = claim.annotations[SELECTED_NODE];
  const sidecar = sidecarsOfDriver(failure.provisioner, 'csi-provisioner', cluster)[0];
  return [
    ...group
      .slice(0, 5)
      .map((one) =>
        fact(
          one.claim,
          'status.phase',
          one.claim.phase,
          `${one.provisioner} was asked ${duration(one.askedMs)} ago, and there is no volume pvc-${one.claim.uid}`,
        ),
      ),
    ...(isDelayed(claim, cluster) && node !== undefined
      ? [fact(claim, `metadata.annotations["${SELECTED_NODE}"]`, node, 'a node was chosen and exists')]
      : []),
    ...(error ? [fact(error, 'message', shortened(error.message), 'the first error of the series')] : []),
    ...(afterEffect
      ? [fact(afterEffect, 'message', shortened(afterEffect.message), 'came later and only follows from the first')]
      : []),
    ...(sourceBytes === undefined || !source
      ? []
      : [
          fact(
            claim,
            'spec.resources.requests.storage',
            claim.requested,
            `${source.kind} ${source.name} needs ${quantityOf(sourceBytes)}`,
          ),
        ]),
    ...(sourceMode === undefined
      ? []
      : [fact(claim, 'spec.volumeMode', claim.volumeMode, `the source is ${sourceMode}`)]),
    ...(source?.uid === null ? [absent(source, 'the source that the claim is to be made from does not exist')] : []),
    ...(failure.class
      ? [fact(failure.class, 'parameters', { ...failure.class.parameters }, 'what the class asks the driver for')]
      : []),
    ...(secret
      ? [
          {
            object: secret,
            path: 'metadata.name',
            value: secret.name,
            says: 'the Secret that the class names; it was not read',
          },
        ]
      : []),
    ...(sidecar
      ? [fact(sidecar.workload, 'status.readyReplicas', sidecar.workload.readyReplicas, 'the provisioner runs')]
      : []),
    ...(claim.name.length > 63
      ? [fact(claim, 'metadata.name', claim.name, `${claim.name.length} characters; a label takes 63 at most`)]
      : []),
  ];
}

const UNITS = ['Ei', 'Pi', 'Ti', 'Gi', 'Mi', 'Ki'] as const;

/** Bytes as a quantity that loses nothing: `3Gi`, or the plain number when no unit divides it. */
function quantityOf(bytes: number): string {
  const at = UNITS.findIndex((_, i) => bytes >= 1024 ** (6 - i) && bytes % 1024 ** (6 - i) === 0);
  return at < 0 ? String(bytes) : `${bytes / 1024 ** (6 - at)}${UNITS[at] ?? ''}`;
}

/** Only what is wrong in the claim itself is put right by making it again. */
function offersOf({ claim, reason, sourceBytes, sourceMode }: Failure): readonly OfferDraft[] {
  if (controllerOf(claim)?.kind === 'Pod') return [];
  const same = {
    namespace: claim.namespace ?? '',
    name: claim.name,
    uid: claim.uid,
    storageClass: claim.className ?? null,
  };
  if (reason === 'source-size' && sourceBytes !== undefined)
    return [recreatePendingClaim.offer({ ...same, storage: quantityOf(sourceBytes) })];
  if (reason === 'volume-mode' && sourceMode !== undefined)
    return [recreatePendingClaim.offer({ ...same, volumeMode: sourceMode })];
  return [];
}

function byHand(failure: Failure, secret: Ref | undefined, cluster: Cluster): readonly ManualStep[] {
  const { claim } = failure;
  const look: ManualStep = {
    says: 'Read the errors of the claim from the first one on.',
    command: `kubectl get events -n ${shellWord(claim.namespace ?? '')} --field-selector involvedObject.name=${shellWord(claim.name)} --sort-by=.firstTimestamp`,
  };
  const sidecar = sidecarsOfDriver(failure.provisioner, 'csi-provisioner', cluster)[0];
  const log: readonly ManualStep[] = sidecar
    ? [
        {
          says: 'Look at the log of the provisioner, where errors stay longer than in events.',
          command: `kubectl logs -n ${shellWord(sidecar.workload.namespace ?? '')} ${sidecar.workload.ref.kind.toLowerCase()}/${shellWord(sidecar.workload.name)} -c ${shellWord(sidecar.container.name)} --since=2h`,
        },
      ]
    : [];
  return [look, ...log, ...stepsFor(failure, secret)];
}

function stepsFor({ claim, reason, class: storageClass, sourceBytes, sourceMode }: Failure, secret: Ref | undefined) {
  const steps: Readonly<Record<ProvisioningReason, readonly ManualStep[]>> = {
    quota: [
      {
        says: 'Ask for a higher limit at the provider, or free storage in the backend whose owner agrees. The provisioner then goes on by itself.',
      },
    ],
    permission: [
      {
        says: "Give the driver's own account in the backend what its manual lists (cloud role, key policy); with an encrypted class that includes the use of the key and grants on it. Kubernetes roles are not concerned.",
      },
      {
        says: 'If the first request is kept alive by the backend after that (errors about an idempotent request), the empty claim can be made again for a fresh one.',
      },
    ],
    secret: [
      secret
        ? {
            says: `See whether the Secret is there; its owner puts right what it holds. Never make an empty one.`,
            command: `kubectl get secret ${shellWord(secret.name)} -n ${shellWord(secret.namespace ?? '')}`,
          }
        : { says: 'Look up which Secret the driver needs, and whether it is there. Never make an empty one.' },
    ],
    parameters: [
      ...(storageClass
        ? [
            {
              says: 'Compare the parameters of the class with the manual of the driver.',
              command: getCommand('storageclass', storageClass),
            },
          ]
        : []),
      ...(claim.name.length > 63
        ? [
            {
              says: 'The name of the claim is longer than a label may be (63), and this driver writes it into one. Use a shorter name in the template or for the StatefulSet, or a newer driver. A claim cannot be renamed.',
            },
          ]
        : [
            {
              says: 'Make a corrected class under a new name, and let the claim be written with it; or correct what the claim asks for.',
            },
          ]),
    ],
    'source-size': [
      {
        says: `Ask for at least ${sourceBytes === undefined ? 'the size of the source' : quantityOf(sourceBytes)} where the claim is written, and make the claim again; it is empty. The snapshot or source claim stays as it is.`,
      },
    ],
    'volume-mode': [
      {
        says: `Ask for volume mode ${sourceMode ?? 'of the source'} where the claim is written, and make the claim again; it is empty. Another mode must be allowed on the VolumeSnapshotContent by whoever vouches for the content.`,
      },
    ],
    topology: [
      {
        says: 'Compare the selected node, the zones of the class (allowedTopologies) and the topology keys that the driver reports for the node.',
        command: `kubectl get csinode ${shellWord(claim.annotations[SELECTED_NODE] ?? '')} -o yaml`.replace(
          " '' ",
          ' ',
        ),
      },
    ],
    backend: [
      {
        says: 'Look whether the storage backend is well and can be reached from where the controller of the driver runs.',
      },
    ],
    'no-answer': [
      {
        says: 'Look whether the backend can be reached and works. Do not delete the claim meanwhile: a volume that is still being made would be left behind.',
      },
    ],
    unknown: [{ says: 'Nothing tells the reason any more. Find it in the log before anything is changed.' }],
  };
  return steps[reason];
}
