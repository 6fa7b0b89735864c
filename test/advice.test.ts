/**
 * Advice that is common on the web and wrong, or dangerous. Each row names one piece and says by which means it could
 * slip in; the product is searched for it in every state that the tests know and in every page of its documentation.
 */
import { globSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { isProvablyNotInUse } from '../src/domain/attachment.ts';
import type { Cluster } from '../src/domain/cluster.ts';
import type { SpokenFinding, SpokenOffer } from '../src/domain/spoken.ts';
import type { PlannedWrite } from '../src/domain/write.ts';
import { cases } from './support/cases.ts';
import { findingsIn, type KnownFinding, knownStates } from './support/findings.ts';

/** What a finding tells a person to do or offers to do. */
interface Given {
  readonly finding: SpokenFinding;
  readonly cluster: Cluster;
  readonly commands: readonly string[];
  readonly steps: readonly string[];
  readonly offers: readonly SpokenOffer[];
  readonly writes: readonly PlannedWrite[];
}

function toGiven({ finding, cluster }: KnownFinding): Given {
  return {
    finding,
    cluster,
    commands: finding.manual.flatMap(({ command }) => command ?? []),
    steps: finding.manual.map(({ says }) => says),
    offers: finding.offers,
    writes: finding.offers.flatMap(({ plan }) => plan),
  };
}

/** A sentence that warns of something names it too. */
const WARNS =
  /\b(?:not|never|no|nor|neither|wrong|instead|nothing|common advice|rather than|destroys?|loses?|harms?|worse|useless|without|cannot|makes? two writers|only when|only if|is right only|unless|safe only|until|forbids?|mistake|overlook|belongs|leaks?|strand|leave|leaves|moves the error|make sure in the backend|when the backend shows|orders the detach)\b/i;

interface Advice {
  /** Its number in the list of the facts. */
  readonly no: number;
  readonly says: string;
  /** Whether what is given for a finding is this advice. */
  readonly isGiven?: (given: Given) => boolean;
  /** A sentence of a page or a step that recommends it, unless it warns. */
  readonly words?: RegExp;
}

const removesFinalizer = (write: PlannedWrite) =>
  write.verb === 'patch' && /\/metadata\/finalizers/.test(JSON.stringify(write.body));
const deletes = (write: PlannedWrite, resource: string) => write.verb === 'delete' && write.resource === resource;
const offerOf = ({ offers }: Given, id: string) => offers.filter(({ remediation }) => remediation === id);

const list: readonly Advice[] = [
  {
    no: 1,
    says: 'set all finalizers of a claim to null',
    isGiven: ({ commands, writes }) =>
      [...commands, ...writes.map(({ body }) => JSON.stringify(body))].some((text) =>
        /"finalizers"\s*:\s*(?:null|\[\s*\])|"path":"\/metadata\/finalizers"/.test(text),
      ) || writes.some((write) => removesFinalizer(write) && removals(write) > 1),
    words:
      /(?:set|patch|clear|null)\w*\b[^.]*\bfinalizers? (?:to null|list|away|to \[\])|clear(?:ing)? (?:all|the) finalizers/i,
  },
  {
    no: 2,
    says: 'take the finalizers off a volume that is bound or that an attachment names',
    isGiven: ({ cluster, offers }) =>
      offers
        .filter(({ remediation }) => remediation === 'remove-finalizer')
        .flatMap(({ plan }) => plan)
        .some(
          ({ resource, name }) =>
            resource === 'persistentvolumes' &&
            (cluster.attachmentsOfVolume(name).length > 0 || cluster.findVolume(name)?.phase === 'Bound'),
        ),
    words: /(?:remove|null|patch)\w* (?:away )?the finalizers? of the (?:PV|PersistentVolume|volume)\b/i,
  },
  {
    no: 3,
    says: 'delete an attachment from a node that may still use the volume',
    isGiven: ({ cluster, commands, writes }) =>
      commands.some((line) => /delete (?:volumeattachment|va)\b/.test(line)) ||
      writes
        .filter((write) => deletes(write, 'volumeattachments'))
        .some(({ name }) => mayBeInUse(cluster, name) && !isProven(cluster, name)),
    words: /delet(?:e|ing) the (?:stale )?(?:VolumeAttachment|attachment)\b/i,
  },
  {
    no: 4,
    says: 'force-delete a pod without proof that its node is off',
    isGiven: (given) =>
      given.commands.some((line) => /--force\b|--grace-period[= ]0/.test(line)) ||
      given.writes.some(
        (write) =>
          deletes(write, 'pods') && /"gracePeriodSeconds":0/.test(JSON.stringify(write.body)) && !isFenced(given),
      ),
    words: /force[- ]?delet(?:e|ing|ion)\b|--force\b|--grace-period=0/i,
  },
  {
    no: 5,
    says: 'an attachment to a node that is gone blocks the volume for ever',
    isGiven: ({ finding }) =>
      finding.fault === 'multi-attach-node-gone' && finding.verdict === 'progress' && finding.offers.length > 0,
    words: /(?:missing|gone|non-existing|deleted) node[^.]*for ever/i,
  },
  {
    no: 6,
    says: 'Kubernetes does not detach by force by default',
    words: /not force-detach by default|no forced detach by default/i,
  },
  { no: 7, says: 'the attachment object is the lock', words: /VolumeAttachment(?: object)? is (?:the|a) lock/i },
  { no: 8, says: 'the provisioner protects volumes from v5.0.1 on', words: /v5\.0\.1\b/ },
  {
    no: 9,
    says: 'find the provisioner by the name of its Deployment',
    isGiven: ({ commands }) =>
      commands.some((line) => /deploy(?:ment)?s?[ /]csi-provisioner|containers\[0\]/.test(line)),
    words: /deploy(?:ment)? csi-provisioner/i,
  },
  {
    no: 10,
    says: 'a claim is held only by pods that have it mounted, so look at running pods alone',
    isGiven: ({ finding, commands }) =>
      finding.fault.startsWith('claim-held-by') && commands.some((line) => /status\.phase[=]+Running/.test(line)),
    words: /while (?:any|a) pod still mounts/i,
  },
  {
    no: 11,
    says: 'a rolling update with an exclusive volume always deadlocks with more than one replica',
    words: /almost 100 ?%|always deadlocks/i,
  },
  {
    no: 12,
    says: 'scale to 0, sleep, scale to a number written down by hand',
    isGiven: ({ commands, cluster, offers }) =>
      commands.some((line) => /\bsleep\b/.test(line)) ||
      offers
        .filter(({ remediation }) => remediation === 'scale-down-and-restore')
        .some((offer) => !restores(offer, cluster)),
    words: /\bsleep \d+/i,
  },
  {
    no: 13,
    says: 'a StatefulSet cannot meet Multi-Attach',
    words: /StatefulSet[^.]*(?:makes? Multi-Attach disappear|avoids? Multi-Attach)/i,
  },
  {
    no: 14,
    says: 'a zone that does not match shows as a mount that times out',
    words: /zone[^.]*(?:shows|appears) as[^.]*timed out/i,
  },
  {
    no: 15,
    says: 'the volumes in "unattached volumes" are the culprits',
    words: /(?:look at|blame|culprit)[^.]*unattached volumes/i,
  },
  {
    no: 16,
    says: 'change volumeBindingMode of a class',
    isGiven: ({ commands, writes }) =>
      [...commands, ...writes.map(({ body }) => JSON.stringify(body))].some((text) => /volumeBindingMode/.test(text)),
    words: /(?:set|change|switch) (?:the )?`?volumeBindingMode/i,
  },
  {
    no: 17,
    says: 'the saved YAML of volume and claim is a snapshot to roll back to',
    isGiven: ({ commands }) => commands.some((line) => /kubectl (?:apply|replace|create)\b/.test(line)),
    words: /roll(?:ing)? ?back[^.]*(?:YAML|manifest)/i,
  },
  {
    no: 18,
    says: 'alert on an expression that can never fire',
    words: /kube_volumeattachment_(?:status|spec)[^.]*(?:==|> ?\d)/i,
  },
  {
    no: 19,
    says: 'delete attachments by automation two minutes after NotReady',
    isGiven: ({ cluster, writes }) =>
      writes
        .filter((write) => deletes(write, 'volumeattachments'))
        .some(({ name }) => cluster.nodeState(cluster.findAttachment(name)?.nodeName ?? '') === 'not-ready'),
    words: /automat\w+[^.]*delet\w+[^.]*attachment/i,
  },
  {
    no: 20,
    says: 'every pod of a halted StatefulSet is unschedulable',
    isGiven: ({ finding }) => finding.fault === 'statefulset-halted' && /unschedulable/i.test(finding.summary),
    words: /entire StatefulSet (?:halts|is halted)/i,
  },
  {
    no: 21,
    says: 'Multi-Attach is never a misconfiguration',
    words: /not a misconfiguration/i,
  },
  {
    no: 22,
    says: 'give every class the policy Retain, or change the policy of a class',
    isGiven: ({ commands, writes }) =>
      commands.some((line) => /(?:patch|edit) (?:sc|storageclass)/.test(line) && /reclaimPolicy/.test(line)) ||
      writes.some(({ resource, body }) => resource === 'storageclasses' && /reclaimPolicy/.test(JSON.stringify(body))),
    words: /every (?:StorageClass|class)[^.]*Retain/i,
  },
  { no: 23, says: 'a Gatekeeper rule over input.request', words: /input\.request/i },
  { no: 24, says: 'a Checkov check that does not exist', words: /CKV2_K8S_STORAGECLASS_BINDING|scan_resource_conf/i },
  {
    no: 25,
    says: 'alert on the number of attachments',
    words: /(?:count|number) of (?:the )?VolumeAttachments?[^.]*alert|alert on the (?:count|number) of/i,
  },
];

function removals({ body }: PlannedWrite): number {
  return JSON.stringify(body).split('"op":"remove"').length - 1;
}

function mayBeInUse(cluster: Cluster, name: string): boolean {
  const attachment = cluster.findAttachment(name);
  const volume = attachment?.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
  if (!attachment || cluster.nodeState(attachment.nodeName) === 'gone') return false;
  return volume === undefined || !isProvablyNotInUse(volume, attachment.nodeName, cluster);
}

/** Whether the attachment is seen to be about another machine than the one of that name now. */
function isProven(cluster: Cluster, name: string): boolean {
  const attachment = cluster.findAttachment(name);
  const recorded = attachment?.annotations['csi.alpha.kubernetes.io/node-id'];
  const drivers = cluster.findCsiNode(attachment?.nodeName ?? '')?.drivers ?? [];
  const present = drivers.find((driver) => driver.name === attachment?.attacher)?.nodeId;
  return recorded !== undefined && present !== undefined && recorded !== present;
}

function isFenced(given: Given): boolean {
  return offerOf(given, 'force-delete-pod').every(
    ({ requires, plan }) =>
      requires.includes('node-off-proof') &&
      plan.every(({ namespace, name }) => {
        const node = given.cluster.findPod(namespace ?? '', name)?.nodeName ?? '';
        return given.cluster.nodeState(node) !== 'ready' && given.cluster.signOfLife(node) === undefined;
      }),
  );
}

/** Down to nothing and back to exactly what stands there now. */
function restores({ plan }: SpokenOffer, cluster: Cluster): boolean {
  const [down, up] = plan.map(({ body }) => JSON.stringify(body));
  const [target] = plan;
  const name = target?.name ?? '';
  const namespace = target?.namespace ?? '';
  const workload = cluster.findDeployment(namespace, name) ?? cluster.findStatefulSet(namespace, name);
  return (
    plan.length === 2 &&
    (down ?? '').includes('"path":"/spec/replicas","value":0') &&
    (up ?? '').includes(`"path":"/spec/replicas","value":${workload?.replicas}`)
  );
}

let given: readonly Given[] = [];
const pages = globSync(['docs/faults/*.md', 'docs/remediations/*.md', 'README.md']).map((path) => ({
  path,
  sentences: sentencesOf(readFileSync(path, 'utf8')),
}));

/** Sentences of a text, headings left out. */
function sentencesOf(text: string): readonly string[] {
  return text.split(/(?<=[.!?])\s+|\n+/).filter((sentence) => !sentence.startsWith('#'));
}

beforeAll(async () => {
  given = (await findingsIn(knownStates())).map(toGiven);
}, 60_000);

it('all twenty-five are here', () => {
  expect(list.map(({ no }) => no)).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
});

describe('advice that is wrong', () => {
  const searched = list.flatMap(({ isGiven, ...one }) => (isGiven ? [{ ...one, isGiven }] : []));
  it.each(searched)('$no, "$says": is no offer and no manual step in any known state', ({ isGiven }) => {
    const wrong = given.filter(isGiven);
    expect(wrong.map(({ finding }) => `${finding.fault}: ${finding.summary}`)).toEqual([]);
  });

  const worded = list.flatMap(({ words, ...one }) => (words ? [{ ...one, words }] : []));
  it.each(worded)('$no, "$says": is recommended by no sentence; where it is named, it is warned of', ({ words }) => {
    const said = [
      ...pages.flatMap(({ path, sentences }) => sentences.map((sentence) => [path, sentence] as const)),
      ...given.flatMap(({ finding, steps }) =>
        [...steps.flatMap(sentencesOf), ...sentencesOf(finding.explanation)].map(
          (sentence) => [finding.fault, sentence] as const,
        ),
      ),
    ];
    const recommended = said.filter(([, sentence]) => words.test(sentence) && !WARNS.test(sentence));
    expect([...new Set(recommended.map((pair) => pair.join(': ')))]).toEqual([]);
  });
});

/** The troubles that such advice is mostly given for: each stands among the cases, with its right answer. */
const troubles: Readonly<Record<string, readonly string[]>> = {
  'a claim that stays Terminating': [
    'claim-held-by-finished-pod',
    'claim-held-by-snapshot',
    'claim-held-by-foreign-finalizer',
    'claim-held-by-pod',
    'control-plane-unhealthy',
  ],
  'a volume that stays Terminating, or leaks': ['volume-deleted-while-bound', 'volume-deletion-stuck', 'detach-failed'],
  'Multi-Attach': [
    'multi-attach-node-down',
    'multi-attach-live-node',
    'multi-attach-node-gone',
    'detach-failed-node-gone',
  ],
  'a rollout that waits for itself': ['rollout-deadlock', 'rwop-conflict'],
  'a class that is not found, a zone that does not match': ['claim-class-missing', 'volume-topology-conflict'],
  'a node that dies under a StatefulSet': ['multi-attach-node-down', 'out-of-service-taint-left'],
};

it.each(Object.entries(troubles))('%s: each of its faults is the right answer of a case', (_, faults) => {
  const answers = new Set(cases.flatMap((one) => one.faults));
  expect(faults.filter((fault) => !answers.has(fault))).toEqual([]);
});

describe('the search', () => {
  it('sees each kind of thing that it looks for', () => {
    const offered = given.flatMap(({ offers }) => offers.map(({ remediation }) => remediation));
    for (const id of ['remove-finalizer', 'delete-attachment', 'force-delete-pod', 'scale-down-and-restore'])
      expect(offered).toContain(id);
    expect(given.flatMap(({ commands }) => commands).length).toBeGreaterThan(500);
    expect(pages.length).toBeGreaterThan(80);
  });

  it.each([
    [1, 'Set all finalizers to null and the claim goes.'],
    [3, 'Delete the VolumeAttachment by hand.'],
    [4, 'Then force-delete the pod.'],
    [12, 'Run sleep 30 in between.'],
    [16, 'Set volumeBindingMode on the class.'],
  ])('would see advice %i in a sentence', (no, sentence) => {
    const advice = list.find((one) => one.no === no);
    expect(advice?.words?.test(sentence) && !WARNS.test(sentence)).toBe(true);
  });
});
