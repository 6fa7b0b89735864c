import { beforeAll, describe, expect, it } from 'vitest';
import { type House, people, startHouse, until, wordsOf } from '../support/house.ts';

/** What people write, right and wrong, and what they are told. */
let house: House;

beforeAll(async () => {
  house = await startHouse('incident');
});

describe('a word that is wrong', () => {
  it.each([
    ['/k8s-storage diagnoze', /diagnose/],
    ['/k8s-storage diagnose pvcc/data-db-0 -n shop', /pvc/],
    ['/k8s-storage diagnose pvc/../x -n shop', /name/],
    ['/k8s-storage diagnose pvc/data-db-0', /namespace|-n/],
    ['/k8s-storage diagnose --cluster mars', /mars/],
    ['/k8s-storage audit', /KIND\/NAME|of what|INCIDENT/i],
  ])('%s is answered to that person alone, with what to write', async (text, told) => {
    expect(await house.say('dana', text)).toEqual({ ok: true });
    await house.saw(told, 'dana');
    expect(house.slack.messages('C0INCIDENTS', people.sam).filter((message) => told.test(wordsOf(message)))).toEqual(
      [],
    );
  });
});

describe('a question', () => {
  it('about a claim that does not exist says so and names near ones, in the thread', async () => {
    await house.say('dana', '/k8s-storage diagnose pvc/data-db-9 -n shop');
    const told = await house.saw(/There is no PersistentVolumeClaim shop\/data-db-9/);
    expect(wordsOf(told)).toMatch(/Did you mean data-db-[012]/);
  });

  it('about something healthy gets one message without repairs, and its incident is closed', async () => {
    await house.say('dana', '/k8s-storage diagnose deployment/csi-disk-controller -n kube-system');
    const told = await house.saw(/Nothing (is )?wrong/i);
    expect(JSON.stringify(told.blocks)).not.toContain('"approve"');
  });

  it('that was asked before joins the thread that stands, and the second person is led there', async () => {
    await house.say('dana', '/k8s-storage diagnose');
    const head = await house.saw(/Node n1 has been down[\s\S]*the whole cluster[\s\S]*asked by/);
    await house.say('sam', '/k8s-storage diagnose');
    await house.saw(/has a thread already/, 'sam');
    const heads = house.slack
      .messages('C0INCIDENTS')
      .filter((message) => !message.threadTs && /Node n1 has been down/.test(message.text));
    expect(heads.map((message) => message.ts)).toEqual([head.ts]);
  });

  it.each([
    ['/k8s-storage help', /diagnose[\s\S]*pause/],
    ['/k8s-storage status', /open incident/],
    ['/k8s-storage incidents', /whole cluster/],
  ])('%s is answered', async (text, told) => {
    await house.say('lin', text);
    await house.saw(told, 'lin');
  });

  it('by the Evidence and Commands buttons is answered to whoever clicked', async () => {
    const finding = await house.saw(/Repair: Taint n1 out of service/);
    await house.click('lin', finding, 'evidence');
    await house.saw(/What was read[\s\S]*status\.attached/, 'lin');
    await house.click('lin', finding, 'commands');
    const commands = wordsOf(await house.saw(/^By hand[\s\S]*kubectl describe node n1/, 'lin'));
    // A command that needs a proof is not handed out to be typed past it.
    expect(commands).not.toMatch(/out-of-service/);
    expect(commands).not.toMatch(/gracePeriodSeconds|--grace-period/);
  });
});

describe('pausing', () => {
  it('is refused to a guest, and told to whoever may', async () => {
    await house.say('gus', '/k8s-storage pause');
    await house.saw(/Guests may not decide/, 'gus');
    await house.say('sam', '/k8s-storage pause');
    await house.saw(/Paused for all clusters/, 'sam');
    await house.say('sam', '/k8s-storage resume');
    await house.saw(/Resumed for all clusters/, 'sam');
  });
});

describe('a cluster that cannot be reached', () => {
  it('is told in the thread within five seconds, with what and why', async () => {
    await house.cluster.close();
    const asked = performance.now();
    await house.say('dana', '/k8s-storage diagnose pod/db-0 -n shop');
    const told = await house.saw(/Could not diagnose Pod shop\/db-0/);
    expect(performance.now() - asked).toBeLessThan(5000);
    expect(wordsOf(told)).toMatch(/cannot be reached/);
    await until(async () => ((await fetch(`${house.address}/readyz`)).status === 503 ? true : undefined), 'not ready');
  });
});
