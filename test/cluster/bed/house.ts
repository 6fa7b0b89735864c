import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../../src/config.ts';
import { type EmbeddedDatabase, startEmbedded } from '../../../src/db/embedded.ts';
import { openStore } from '../../../src/db/store.ts';
import type { AuditRow } from '../../../src/domain/audit.ts';
import { Transient } from '../../../src/domain/errors.ts';
import { type Incident, isOver } from '../../../src/domain/incident.ts';
import { approvalFormOf, isTerminal, needsModal, type Plan } from '../../../src/domain/plan.ts';
import type { Proof } from '../../../src/domain/remediation.ts';
import type { Report } from '../../../src/domain/report.ts';
import { textIn, verbatim } from '../../../src/domain/text.ts';
import { openClusters } from '../../../src/kube/clusters.ts';
import type { Message } from '../../../src/playground/slack/messages.ts';
import { type PlaygroundSlack, startPlaygroundSlack } from '../../../src/playground/slack/server.ts';
import type { ClusterAccess, ClusterReader, Store } from '../../../src/ports.ts';
import { type Running, start, systemClock } from '../../../src/wire.ts';
import { channel, people, silent, type Who } from '../../support/house.ts';
import type { Bed } from './bed.ts';
import { backendOf } from './inventory.ts';
import { listAt, textAt } from './objects.ts';

const SIGNING_SECRET = 'a-secret-of-the-tests-only';
const TOKEN = 'xoxb-of-the-tests';
const PATIENCE_MS = 60_000;
/** The slowest remediation waits ten minutes for real controllers; with short timers none takes two. */
const PLAN_MS = 660_000;
/** After a click; then it is made again. */
const ANSWER_MS = 20_000;
const MOST_CLICKS = 3;
const POLL_MS = 100;

/** Who approves, in this order; dana asks. */
const approvers: readonly Who[] = ['sam', 'lin'];

/** What an approver knows from outside the cluster, in words; a scenario may say it in its own. */
const usualProofs: Readonly<Record<Proof, string>> = {
  'node-off-proof': 'The cloud console says that the instance is terminated.',
  'node-clean-proof': 'Power-cycled over the BMC at noon; no mounts are left on it.',
  'backend-detached-proof': 'The storage console shows the volume attached to no instance.',
  'backend-deleted-proof': 'The storage console does not know this handle any more.',
  'backend-volume-proof': 'Looked at the volume in the storage console: it is the one, used by nothing else.',
  'finalizer-owner-gone': 'Its operator was uninstalled last week and will not come back.',
  'data-disposable': 'The team that owns the data agreed in its channel that it goes.',
  'old-data-wanted': 'The team that owns the data wants exactly the old volume back.',
  'downtime-accepted': 'The owner of the workload accepted a minute of downtime.',
};

/** The plan that was to be approved does not wait for approval any more. */
export class PlanReplaced extends Error {
  override readonly name = 'PlanReplaced';

  constructor(plan: string, state: string) {
    super(`plan ${plan} does not wait for approval any more, it is ${state}`);
  }
}

/**
 * The product, whole and real, in one process for all scenarios of a run: its database, its jobs, a Slack that behaves
 * like Slack. Each scenario's cluster has a name of its own and is plugged in when it has been started.
 */
export class House {
  readonly store: Store;
  readonly #slack: PlaygroundSlack;
  readonly #beds: Map<string, { readonly access: ClusterAccess }>;
  readonly #close: () => Promise<void>;
  /** A person has one screen: two scenarios must not fill in the same form. */
  #screens: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    readonly store: Store;
    readonly slack: PlaygroundSlack;
    readonly beds: Map<string, { readonly access: ClusterAccess }>;
    readonly close: () => Promise<void>;
  }) {
    this.store = parts.store;
    this.#slack = parts.slack;
    this.#beds = parts.beds;
    this.#close = parts.close;
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** From here on the product reaches that cluster, by the two kubeconfigs of its two accounts. */
  plug(bed: Bed): void {
    const home = undefined;
    const settings = (who: 'read' | 'act') => ({
      kubeconfig: bed.kubeconfigOfBot(who),
      home,
      allowedPlugins: [],
    });
    const backend = backendOf(bed, () => bed.now());
    const clusters = openClusters({
      read: settings('read'),
      act: settings('act'),
      contexts: [bed.name],
      clock: bed,
      backend,
      usage: bed.usage,
    });
    const access = clusters.get(bed.name);
    if (!access) throw new Error(`no cluster ${bed.name}`);
    this.#beds.set(bed.name, { access });
  }

  unplug(bed: Bed): void {
    this.#beds.delete(bed.name);
  }

  /** Asks in Slack, and gives the incident with its report once the answer stands in a thread. */
  async diagnose(cluster: string, scope: string): Promise<Incident & { readonly report: Report }> {
    const before = await this.#newest(cluster);
    const target = scope === 'cluster' ? '' : ` ${scope}`;
    const said = await this.#as('dana').say(`/k8s-storage diagnose${target} --cluster ${cluster}`, { channel });
    if (!said.ok) throw new Error(`the slash command was not taken: ${said.problem}`);
    return this.#answered(cluster, (incident) => incident.id !== before?.id || incident.answered > before.answered);
  }

  /** Asks again in the incident's thread. */
  async recheck(incident: Incident): Promise<Incident & { readonly report: Report }> {
    const { thread, answered } = await this.#until('the thread of the incident', async () => {
      const now = await this.store.findIncident(incident.id);
      return now && now.thread !== null ? { thread: now.thread, answered: now.answered } : undefined;
    });
    const said = await this.#as('dana').say('@k8s-storage recheck', { channel, threadTs: thread });
    if (!said.ok) throw new Error(`the recheck was not taken: ${said.problem}`);
    return this.#answered(incident.cluster, (now) => now.id === incident.id && now.answered > answered);
  }

  /** Its plans, once no diagnosis of it is due: one that replaces a plan asks for one that brings the next. */
  async plansOf({ id }: Incident): Promise<readonly Plan[]> {
    await this.#until(`the diagnosis of ${id} that is due`, async () => {
      const now = await this.store.findIncident(id);
      return now && (isOver(now.state) || now.answered >= now.diagnoses) ? now : undefined;
    });
    return this.store.plansOfIncident(id);
  }

  /** As many people as the plan needs click on Approve and say in the form what it asks for. */
  async approve(plan: Plan, needed: number, proofs: Readonly<Partial<Record<Proof, string>>> = {}): Promise<void> {
    for (const who of approvers.slice(0, needed)) {
      await this.#insist(async () => {
        const message = await this.#until(
          `the button of ${plan.id}`,
          async () => this.#messageOf(plan) ?? (await this.#checkWaits(plan)),
        );
        const vote = this.#screens.then(() => this.#vote(who, plan, message, proofs));
        this.#screens = vote.catch(() => undefined);
        await vote;
        await this.#until(
          `the vote of ${who}`,
          async () => {
            const now = await this.store.findPlan(plan.id);
            return now?.votes.some((one) => one.user === people[who]) || undefined;
          },
          ANSWER_MS,
        );
      });
    }
  }

  /** The plan once it has ended, whichever way. */
  async ended(plan: Plan): Promise<Plan> {
    return this.#until(
      `plan ${plan.id} to end`,
      async () => {
        const now = await this.store.findPlan(plan.id);
        if (!now) throw new Error(`plan ${plan.id} is gone`);
        return isTerminal(now.state) || now.state === 'NEEDS_ATTENTION' || now.state === 'HALTED' ? now : undefined;
      },
      PLAN_MS,
    );
  }

  /** Waits until these words stand in the channel, for everybody to read. */
  async untilSaid(words: string): Promise<void> {
    const written = JSON.stringify(words).slice(1, -1);
    await this.#until(
      `the words ${words}`,
      () =>
        this.#slack.messages(channel).some((message) => JSON.stringify(message.blocks).includes(written)) || undefined,
    );
  }

  auditOf(incident: Incident): Promise<readonly AuditRow[]> {
    return this.store.auditOf({ incident: incident.id, limit: 10_000 });
  }

  /** A diagnosis made in the meantime replaces plans; who waits for the old one's button waits for ever. */
  async #checkWaits(plan: Plan): Promise<undefined> {
    const now = await this.store.findPlan(plan.id);
    if (now && now.state !== 'AWAITING_APPROVAL') throw new PlanReplaced(plan.id, now.state);
    return undefined;
  }

  /** A click opens no form when the machine is so busy that it came too late; people click again. */
  async #insist(click: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await click();
      } catch (error) {
        if (attempt >= MOST_CLICKS || error instanceof PlanReplaced) throw error;
      }
    }
  }

  async #vote(who: Who, plan: Plan, message: Message, proofs: Readonly<Partial<Record<Proof, string>>>): Promise<void> {
    const person = this.#as(who);
    const blockId = blockOf(message, plan) ?? '';
    const clicked = await person.click({ channel, ts: message.ts, actionId: 'approve', blockId });
    if (!clicked.ok) throw new Error(`${who} could not click on Approve: ${clicked.problem}`);
    const form = approvalFormOf(plan);
    if (!needsModal(form)) return;
    const view = await this.#until(`a form for ${who}`, () => this.#slack.modal(people[who]), ANSWER_MS);
    const given = {
      ...Object.fromEntries(form.proofs.map((proof) => [`proof/${proof}`, proofs[proof] ?? usualProofs[proof]])),
      ...(form.reason ? { reason: 'The workload is down and will not come back by itself.' } : {}),
      ...(form.typedName === null ? {} : { 'typed-name': form.typedName }),
    };
    const input = Object.fromEntries(Object.entries(given).map(([block, value]) => [block, { value }]));
    const sent = await person.submit(String(view['id']), input);
    if (!sent.ok) throw new Error(`the form of ${who} was not taken: ${sent.problem} ${JSON.stringify(sent.errors)}`);
  }

  #messageOf(plan: Plan): Message | undefined {
    return this.#slack.messages(channel).findLast((message) => blockOf(message, plan) !== undefined);
  }

  #as(who: Who) {
    const acts = this.#slack.as(people[who]);
    if (!acts) throw new Error(`${who} is not in the workspace`);
    return acts;
  }

  async #newest(cluster: string): Promise<Incident | undefined> {
    const all = await this.store.listIncidents({ onlyOpen: false, limit: 500 });
    return all
      .filter((incident) => incident.cluster === cluster)
      .toSorted((a, b) => (a.openedAt < b.openedAt ? 1 : -1))[0];
  }

  #answered(cluster: string, isNew: (incident: Incident) => boolean): Promise<Incident & { readonly report: Report }> {
    return this.#until(`the diagnosis of ${cluster}`, async () => {
      const incident = await this.#newest(cluster);
      if (!incident || !isNew(incident)) return undefined;
      if (incident.problem !== null)
        throw new Error(`the diagnosis could not be made: ${textIn(incident.problem, 'en')}`);
      const { report } = incident;
      return report === null || incident.diagnoses > incident.answered ? undefined : { ...incident, report };
    });
  }

  async #until<T>(
    what: string,
    look: () => T | undefined | Promise<T | undefined>,
    withinMs = PATIENCE_MS,
  ): Promise<T> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

/** Starts the product for clusters of these names. */
export async function startScenarioHouse(clusters: readonly string[]): Promise<House> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bed-house-'));
  const opened: (() => Promise<unknown>)[] = [() => rm(dataDir, { recursive: true, force: true })];
  const close = async () => {
    for (const part of opened.toReversed()) await part();
    opened.length = 0;
  };
  try {
    const database: EmbeddedDatabase = await startEmbedded({
      dataDir: join(dataDir, 'data'),
      log: silent,
      parameters: { fsync: 'off', full_page_writes: 'off' },
    });
    opened.push(() => database.stop());
    const slack = await startPlaygroundSlack({
      host: '127.0.0.1',
      port: 0,
      signingSecret: SIGNING_SECRET,
      botToken: TOKEN,
      clock: systemClock,
      ids: randomUUID,
      log: silent,
      cluster: { snapshot: () => Promise.resolve([]), subscribe: () => () => {} },
      scenarios: { list: () => [], current: () => '', load: async () => {} },
    });
    opened.push(() => slack.close());
    const config = readConfig({
      SLACK_BOT_TOKEN: TOKEN,
      SLACK_SIGNING_SECRET: SIGNING_SECRET,
      SLACK_API_URL: slack.apiUrl,
      DATABASE_URL: database.connectionString,
      HOST: '127.0.0.1',
      PORT: '0',
      SETTLE: '1s',
    });
    const beds = new Map<string, { readonly access: ClusterAccess }>();
    const bot: Running = await start(config, silent, {
      clusters: new Map(clusters.map((name) => [name, socketOf(name, beds)])),
    });
    opened.push(() => bot.close());
    slack.setBotUrl(`${bot.address}/slack/events`);
    const store = await openStore({ connectionString: database.connectionString, log: silent });
    opened.push(() => store.close());
    return new House({ store, slack, beds, close });
  } catch (error) {
    await close();
    throw error;
  }
}

/** A configured cluster whose API server comes and goes, as far as the product can tell. */
function socketOf(name: string, beds: ReadonlyMap<string, { readonly access: ClusterAccess }>): ClusterAccess {
  const plugged = () => {
    const found = beds.get(name);
    if (!found) throw new Transient(verbatim(`cluster ${name} does not run now`));
    return found.access;
  };
  const acting = () => {
    const { act } = plugged();
    if (!act) throw new Error(`no acting access to ${name}`);
    return act;
  };
  const readerOf = (reader: () => ClusterReader): ClusterReader => ({
    name,
    identity: async (signal) => reader().identity(signal),
    read: async (request, signal) => reader().read(request, signal),
    get: async (resource, namespace, object, signal) => reader().get(resource, namespace, object, signal),
  });
  return {
    name,
    reader: readerOf(() => plugged().reader),
    act: {
      reader: readerOf(() => acting().reader),
      writer: { write: async (write, options, signal) => acting().writer.write(write, options, signal) },
      backend: {
        async write(write, options, signal) {
          const { backend } = acting();
          if (!backend) throw new Error(`no storage system is connected to ${name}`);
          return backend.write(write, options, signal);
        },
      },
    },
  };
}

/** The block of a message in which that plan's own Approve button stands. */
function blockOf(message: Message, plan: Plan): string | undefined {
  const block = message.blocks.find((one) =>
    listAt(one, 'elements').some(
      (element) => textAt(element, 'action_id') === 'approve' && textAt(element, 'value') === plan.id,
    ),
  );
  return block && textAt(block, 'block_id');
}
