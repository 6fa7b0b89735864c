import { beforeAll, describe, expect, it } from 'vitest';
import { faultsOfProse } from '../support/chinese.ts';
import { type House, startHouse, wordsOf } from '../support/house.ts';

/** Mei's Slack speaks Chinese, the others' English. Who is spoken to how is each reader's own, but a thread has one language. */
let house: House;

beforeAll(async () => {
  house = await startHouse('incident');
});

describe('somebody whose Slack speaks Chinese', () => {
  it('is answered in Chinese at the very first word', async () => {
    expect(await house.say('mei', '/k8s-storage help')).toEqual({ ok: true });
    const told = wordsOf(await house.saw(/找出 Kubernetes 存储卡住的原因/, 'mei'));
    expect(told).toMatch(/`diagnose .*` 找出/);
  });

  it('gets a thread in Chinese, whose sentences say what the English ones do', async () => {
    await house.say('mei', '/k8s-storage diagnose pvc/data-db-0 -n shop');
    const head = wordsOf(await house.saw(/节点 n1 已停机[\s\S]*待办：/));
    expect(head).toMatch(/^严重：节点 n1 已停机[^\n]*\n待办：/);
    const finding = wordsOf(await house.saw(/修复：给 n1 添加停止服务污点/));
    for (const words of ['高风险', '每个批准人都要回答', '撤销方法', '批准 0/2', '证据', '人工可以做的事'])
      expect(finding).toContain(words);
    expect(faultsOfProse(head.split('\n')[0] ?? '')).toEqual([]);
  });

  it('is refused in Chinese what they may not do, and the others are asked in English', async () => {
    const finding = await house.saw(/修复：给 n1 添加停止服务污点/);
    await house.click('mei', finding, 'approve', 'taint-node-out-of-service');
    await house.saw(/这次诊断由你发起，因此必须由另外两个人批准/, 'mei');
    await house.click('dana', finding, 'evidence');
    await house.saw(/What was read[\s\S]*status\.attached/, 'dana');
    await house.click('mei', finding, 'evidence');
    await house.saw(/读取于[\s\S]*status\.attached/, 'mei');
  });
});

describe('somebody whose Slack speaks English', () => {
  it('is led to the Chinese thread in English when they ask the same', async () => {
    await house.say('sam', '/k8s-storage diagnose pvc/data-db-0 -n shop');
    await house.saw(/has a thread already/, 'sam');
  });
});
