import { beforeAll, describe, expect, it } from 'vitest';
import { type House, startHouse, until } from '../support/house.ts';

/** The picture of an incident, from the cluster to the thread. */
let house: House;

beforeAll(async () => {
  house = await startHouse('incident');
});

interface Shown {
  readonly ts: string;
  readonly file: string;
  readonly words: string;
}

function picturesShown(): readonly Shown[] {
  return house.slack.messages('C0INCIDENTS').flatMap((message) =>
    message.blocks.flatMap((block) => {
      const source = block['slack_file'];
      if (block['type'] !== 'image' || typeof source !== 'object' || source === null || !('id' in source)) return [];
      return [{ ts: message.ts, file: String(source.id), words: String(block['alt_text']) }];
    }),
  );
}

describe('an incident with more than two objects', () => {
  it('has a picture in its thread, told in words too, and not a second one after a restart', async () => {
    await house.say('dana', '/k8s-storage diagnose pvc/data-db-1 -n shop');
    const [first] = await until(() => (picturesShown().length > 0 ? picturesShown() : undefined), 'a picture');
    expect(first?.words).toMatch(/The cause is Node n\d \(NotReady\); stuck: .*Pod shop\/db-\d/);
    const answer = await fetch(new URL(`/files/${first?.file}`, house.slack.apiUrl));
    expect(answer.headers.get('content-type')).toBe('image/png');
    expect((await answer.arrayBuffer()).byteLength).toBeLessThan(200_000);
    const before = house.slack.messages('C0INCIDENTS').length;
    await house.restart();
    const head = house.slack.messages('C0INCIDENTS').find((message) => message.ts === first?.ts);
    await house.say('dana', '@k8s-storage recheck', head?.threadTs);
    await house.saw(/recheck/);
    await until(() => (picturesShown().length > 0 ? true : undefined), 'the picture again');
    expect(picturesShown().map(({ ts, file }) => ({ ts, file }))).toEqual([{ ts: first?.ts, file: first?.file }]);
    expect(house.slack.messages('C0INCIDENTS').length).toBeLessThanOrEqual(before + 2);
  });
});
