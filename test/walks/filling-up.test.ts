import { beforeAll, describe, expect, it } from 'vitest';
import { ALERT_TOKEN, group, send, written } from '../support/alerts.ts';
import { channel, type House, startHouse, wordsOf } from '../support/house.ts';

/** A volume runs full: an alert tells of it, Prometheus how fast, and an approved plan gives it room under the pod. */
let house: House;

beforeAll(async () => {
  house = await startHouse('claim-filling-up', {
    SLACK_INCIDENT_CHANNEL: channel,
    ALERT_TOKEN,
    SCAN_INTERVAL: '0',
  });
});

const fire = (name: string, labels: Readonly<Record<string, string>>) =>
  send(house.address, group([written({ name, labels: { severity: 'critical', ...labels } })]));
const heads = () => house.slack.messages(channel).filter((message) => !message.threadTs);

describe('a claim that fills up', () => {
  it('opens a thread by its alert, with what is measured and the size that is offered', async () => {
    expect(
      await fire('KubePersistentVolumeFillingUp', { namespace: 'shop', persistentvolumeclaim: 'ledger-data' }),
    ).toMatchObject({ status: 202 });
    const head = await house.saw(/Claim shop\/ledger-data has 8% free; at the pace of the last 6 h it is full in 31 h/);
    expect(head.threadTs).toBeUndefined();
    const finding = await house.saw(/Repair: Expand claim ledger-data to 30Gi/);
    expect(wordsOf(finding)).toMatch(/a volume never shrinks/);
    expect(wordsOf(finding)).not.toMatch(/search-data/);
  });

  it('is enlarged once somebody approves, and is well then', async () => {
    const finding = await house.saw(/Repair: Expand claim ledger-data to 30Gi/);
    await house.click('sam', finding, 'approve', 'expand-claim');
    await house.saw(/“Expand claim ledger-data to 30Gi” is done and verified/);
    const writes = house.cluster.journal.map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);
    expect(writes).toEqual(['patch persistentvolumeclaims ledger-data']);
    const claim = house.cluster.store.get('persistentvolumeclaims', 'shop', 'ledger-data');
    expect(claim?.status?.capacity?.['storage']).toBe('30Gi');
    const [head] = heads();
    await house.say('sam', '<@U0K8STORAGE> recheck', head?.ts);
    await house.saw(/is not found any more|Resolved/);
  });

  it('that has been as full for weeks opens no thread', async () => {
    const before = heads().length;
    await fire('KubePersistentVolumeFillingUp', { namespace: 'shop', persistentvolumeclaim: 'search-data' });
    await house.say('dana', '/k8s-storage incidents');
    await house.saw(/ledger-data/, 'dana');
    expect(heads()).toHaveLength(before);
  });
});

it('errors of a volume lead to its claim', async () => {
  const [volume] = house.cluster.store.list('persistentvolumes');
  house.cluster.store.mutate('persistentvolumes', undefined, volume?.metadata.name ?? '', (draft) => {
    draft.metadata.deletionTimestamp = '2026-11-30T12:00:00Z';
  });
  await fire('KubePersistentVolumeErrors', { persistentvolume: volume?.metadata.name ?? '' });
  await house.saw(/(ledger|search)-data[\s\S]*KubePersistentVolumeErrors/);
});
