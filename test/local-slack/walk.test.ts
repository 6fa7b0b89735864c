import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { until } from '../support/house.ts';
import { runCli } from '../support/processes.ts';
import { channel, type Message, mention, people, type View, type Who, wordsOf } from './local-slack.ts';
import { startWalk, type Walk } from './walk.ts';

const ORPHANS = ['vol-3f9c1a70', 'vol-77b0e2d4', 'vol-c85d4e19'];
const TAINT = 'plan/taint-node-out-of-service/';
const RETAIN = 'plan/set-reclaim-policy-retain/';
const DELETED_CLAIMS = ['data-db-0', 'data-db-1'];

/**
 * The incident of the playground, walked through in a Slack that was not written here: npm's `local-slack`, a program of
 * its own in a network of its own. The bot is the one of production, wired to the simulated cluster.
 */
describe.each(['http', 'socket'] as const)('the incident, by local-slack over %s', (mode) => {
  let walk: Walk;
  beforeAll(async () => {
    walk = await startWalk(mode);
  });
  afterAll(async () => {
    await walk?.close();
  });

  /** The newest message that says it. */
  async function saw(text: RegExp, where: (message: Message) => boolean = () => true): Promise<Message> {
    let seen: readonly Message[] = [];
    const look = async () => {
      seen = await walk.slack.messages();
      return seen.findLast((message) => where(message) && text.test(wordsOf(message)));
    };
    return until(look, `a message like ${text}`, () => [...seen.map(wordsOf), ...walk.complaints].join('\n---\n'));
  }

  /** Ids of the plans that were approved, in that order. */
  const approved: string[] = [];

  const isHead = (message: Message) => message.thread_ts === undefined && message.subtype === undefined;
  const offer = () => saw(/Repair: Taint n1 out of service/);

  async function formGone(): Promise<void> {
    const look = () => (walk.slack.form() === undefined ? true : undefined);
    await until(look, 'the form to close', () => JSON.stringify([walk.slack.formErrors(), walk.slack.form()]));
  }

  async function openForm(who: Who): Promise<View> {
    await walk.slack.click(who, await offer(), 'approve', TAINT);
    return until(
      () => walk.slack.form(),
      `the form for ${who}`,
      () => walk.complaints.join('\n'),
    );
  }

  async function approveWithProof(who: Who): Promise<void> {
    await openForm(who);
    const plan = planId(await offer(), TAINT);
    if (!approved.includes(plan)) approved.push(plan);
    walk.slack.submit(who, {
      'proof/node-off-proof': `${who}: the cloud console says instance i-n1 is terminated since 08:12`,
      reason: `${who}: the shop is down and n1 will not come back`,
    });
    await formGone();
  }

  it('runs where nothing but the bot’s end of the cable can be reached', async () => {
    expect(await walk.network.routeTo(walk.network.host)).toContain(walk.network.host);
    for (const elsewhere of ['1.1.1.1', '10.0.0.1', '169.254.169.254']) {
      expect(await walk.network.routeTo(elsewhere), elsewhere).toBeUndefined();
    }
  });

  it('is diagnosed by one command, in a thread whose first message tells the cause first', async () => {
    await walk.slack.command('dana', '/k8s-storage', 'diagnose');
    const head = wordsOf(await saw(/Node n1 has been down/, isHead));
    const cause = head.indexOf('Node n1 has been down');
    for (const other of ['ci-cache', ...ORPHANS]) expect(head.indexOf(other), other).toBeGreaterThan(cause);
  });

  it('names each of the three orphaned backend volumes in the thread, and no volume of another cluster', async () => {
    const { ts } = await saw(/Node n1 has been down/, isHead);
    for (const orphan of ORPHANS) await saw(new RegExp(orphan), (message) => message.thread_ts === ts);
    expect((await walk.slack.messages()).filter((message) => wordsOf(message).includes('vol-0b61f8aa'))).toEqual([]);
  });

  it('refuses the approval of the one who asked: told alone, with the reason, and no form', async () => {
    await walk.slack.click('dana', await offer(), 'approve', TAINT);
    const refusal = await saw(/two other people must approve/, (message) => message.subtype === 'ephemeral');
    expect(refusal.ephemeral_to).toBe(people.dana);
    expect(walk.slack.form()).toBeUndefined();
  });

  it('asks an approver for proof and reason, and says under the input what is missing', async () => {
    const form = await openForm('sam');
    const inputs = form.blocks.filter((block) => block.type === 'input').map((block) => block.block_id);
    expect(inputs).toEqual(['proof/node-off-proof', 'reason']);
    walk.slack.submit('sam', { reason: 'the shop is down' });
    const errors = await until(
      () => (Object.keys(walk.slack.formErrors()).length > 0 ? walk.slack.formErrors() : undefined),
      'the form’s errors',
    );
    expect(Object.keys(errors)).toEqual(['proof/node-off-proof']);
    walk.slack.cancel('sam');
    await formGone();
  });

  it('keeps the volumes of both deleted claims, on one click of one person each', async () => {
    const volumes: string[] = [];
    for (const claim of DELETED_CLAIMS) {
      const finding = await saw(new RegExp(`Claim shop/${claim} was deleted[^]*Repair: Set volume`));
      volumes.push(/Repair: Set volume (\S+) to Retain/.exec(wordsOf(finding))?.[1] ?? '');
      approved.push(planId(finding, RETAIN));
      await walk.slack.click('sam', finding, 'approve', RETAIN);
    }
    for (const volume of volumes) await saw(new RegExp(`“Set volume ${volume} to Retain” is done and verified`));
    expect(retained(walk)).toEqual(DELETED_CLAIMS);
  });

  it('does not touch the node on one approval', async () => {
    await approveWithProof('sam');
    await saw(/1 of 2 approvals/);
    expect(walk.cluster.journal.filter(({ resource }) => resource === 'nodes')).toEqual([]);
  });

  it('is repaired, verified and told as done when a second person approves', async () => {
    await approveWithProof('lin');
    const result = await saw(/“Taint n1 out of service” is done and verified/);
    expect(wordsOf(result)).toMatch(new RegExp(`2 of 2 approvals: <@${people.sam}>, <@${people.lin}>`));
    expect(await metadataOf(walk, result)).toMatchObject({ kind: 'result', state: 'SUCCEEDED' });
  });

  it('has recovered: three pods Ready, nothing attached to n1, and no data of db deleted', async () => {
    const { store, backend } = walk.cluster;
    await until(() => (readyPods(walk).length === 3 ? true : undefined), 'three pods to be Ready');
    expect(readyPods(walk)).toEqual(['db-0', 'db-1', 'db-2']);
    expect(store.list('volumeattachments').filter((attachment) => at(attachment, 'spec', 'nodeName') === 'n1')).toEqual(
      [],
    );
    expect(backend.calls('DeleteVolume')).toEqual([]);
    expect(retained(walk)).toEqual(DELETED_CLAIMS);
  });

  it('wrote what the approved plans say and nothing else, as the acting account', async () => {
    const steps: z.infer<typeof write>[] = [];
    for (const id of approved) {
      const { data } = await runCli(['plan', id, '--output', 'json'], { DATA_DIR: walk.dataDir });
      const plan = z.object({ state: z.string(), steps: z.array(write) }).parse(JSON.parse(data));
      expect(plan.state).toBe('SUCCEEDED');
      steps.push(...plan.steps);
    }
    const { journal } = walk.cluster;
    const made = journal.map((entry) => write.parse({ ...entry, namespace: entry.namespace || null }));
    expect(made.toSorted(byName)).toEqual(steps.toSorted(byName));
    expect(made).toHaveLength(3);
    expect(new Set(journal.map(({ user }) => user))).toEqual(
      new Set(['system:serviceaccount:k8s-storage:k8s-storage-act']),
    );
    const ofNode = z.array(operation).parse(journal.find(({ resource }) => resource === 'nodes')?.body);
    expect(ofNode[0]).toMatchObject({ op: 'test', path: '/metadata/uid' });
    expect(ofNode.filter(({ op }) => op !== 'test').map(({ op, path }) => `${op} ${path}`)).toEqual([
      expect.stringMatching(/^add \/spec\/taints/),
    ]);
  });

  it('answers a mention in the thread, to the one who asked and alone', async () => {
    const { ts } = await saw(/Taint n1 out of service/, isHead);
    await walk.slack.say('lin', ts, `${mention} status`);
    const isAnswer = (message: Message) => message.ephemeral_to === people.lin && message.thread_ts === ts;
    await saw(/Taint n1 out of service/, isAnswer);
  });

  it('leaves an audit trail that verifies while the bot runs', async () => {
    const verified = await runCli(['audit', 'verify'], { DATA_DIR: walk.dataDir });
    expect(verified.data.trim().split('\n').at(-1)).toMatch(/^ok: \d+ events, head [0-9a-f]{64}$/);
    expect(verified.code).toBe(0);
  });

  it('used only methods that this Slack knows, and left no complaint on either side', async () => {
    const traffic = await walk.slack.traffic();
    expect(traffic.filter((entry) => entry.direction === 'internal')).toEqual([]);
    expect(traffic.filter((entry) => entry.summary.startsWith('HTTP ') && entry.summary !== 'HTTP 200')).toEqual([]);
    expect(walk.complaints).toEqual([]);
    const sockets = traffic.filter((entry) => entry.summary.startsWith('socket connected (hello)'));
    expect(sockets.length > 0).toBe(mode === 'socket');
  });
});

const write = z.object({
  verb: z.string(),
  resource: z.string(),
  namespace: z.string().nullable(),
  name: z.string(),
  uid: z.string().nullable(),
});
const operation = z.object({ op: z.string(), path: z.string(), value: z.unknown() });

function byName(one: z.infer<typeof write>, other: z.infer<typeof write>): number {
  return one.name.localeCompare(other.name);
}

/** The plan behind the buttons of a message. */
function planId({ blocks }: Message, prefix: string): string {
  const id = blocks?.find(({ block_id }) => block_id?.startsWith(prefix))?.block_id?.slice(prefix.length);
  if (id === undefined) throw new Error(`there is no plan of ${prefix} in the message`);
  return id;
}

/** Claims of the shop whose volume has the policy Retain. */
function retained({ cluster }: Walk): readonly unknown[] {
  return cluster.store
    .list('persistentvolumes')
    .filter((volume) => at(volume, 'spec', 'claimRef', 'namespace') === 'shop')
    .filter((volume) => at(volume, 'spec', 'persistentVolumeReclaimPolicy') === 'Retain')
    .map((volume) => at(volume, 'spec', 'claimRef', 'name'))
    .toSorted();
}

function readyPods({ cluster }: Walk): readonly string[] {
  const conditions = z.array(z.object({ type: z.string(), status: z.string() })).default([]);
  return cluster.store
    .list('pods')
    .filter((pod) => pod.metadata.namespace === 'shop')
    .filter((pod) =>
      conditions
        .parse(at(pod, 'status', 'conditions'))
        .some(({ type, status }) => type === 'Ready' && status === 'True'),
    )
    .map((pod) => pod.metadata.name)
    .toSorted();
}

/** A field of an object by its path; undefined where there is none. */
function at(object: unknown, ...path: readonly string[]): unknown {
  let value = object;
  for (const key of path) value = z.record(z.string(), z.unknown()).safeParse(value).data?.[key];
  return value;
}

const edit = z.object({
  channel: z.literal(channel),
  ts: z.string().optional(),
  metadata: z.object({ event_type: z.literal('k8s_storage'), event_payload: z.record(z.string(), z.string()) }),
});

/** The metadata of a message's last edit, as they came over the wire: this Slack does not keep them. */
async function metadataOf({ slack }: Walk, of: Message): Promise<Readonly<Record<string, string>> | undefined> {
  const edits = (await slack.traffic())
    .filter((entry) => entry.summary === 'chat.update')
    .flatMap((entry) => edit.safeParse(entry.detail).data ?? []);
  return edits.findLast(({ ts }) => ts === of.ts)?.metadata.event_payload;
}
