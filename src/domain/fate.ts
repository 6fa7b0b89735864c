import type { Claim, Volume } from './objects.ts';
import { deletingForMs } from './pod.ts';
import { duration, en, named, sentences, type Text, zh } from './text.ts';

/** What the end of a deletion does to the data, by name of the volumes. */
export interface Fate {
  /** Destroyed with the claim: policy Delete. */
  readonly goes: readonly string[];
  /** Emptied for the next claim: policy Recycle. */
  readonly wiped: readonly string[];
  /** Kept: policy Retain. */
  readonly stays: readonly string[];
  /** Named by a claim, but missing or bound to another one: nothing is reclaimed. */
  readonly lost: readonly string[];
}

export function fateOf(held: readonly { readonly claim: Claim; readonly volume: Volume | undefined }[]): Fate {
  const volumes = held.flatMap(({ volume }) => volume ?? []);
  const withPolicy = (policy: string) =>
    volumes.filter((volume) => volume.reclaimPolicy === policy).map((volume) => volume.name);
  return {
    goes: withPolicy('Delete'),
    wiped: withPolicy('Recycle'),
    stays: withPolicy('Retain'),
    lost: held.flatMap(({ claim, volume }) => (volume ? [] : (claim.volumeName ?? []))),
  };
}

/** Says in words whether data is destroyed. Every finding about a claim that is being deleted says so. */
export function fateInWords({ goes, wiped, stays, lost }: Fate): Text {
  const told = [
    ...tell(goes, (volumes) => ({
      en: en`When the deletion ends, the data of ${volumes} is destroyed: the reclaim policy is Delete.`,
      zh: zh`删除完成时，${volumes} 的数据会被销毁：回收策略为 Delete。`,
    })),
    ...tell(wiped, (volumes) => ({
      en: en`When the deletion ends, ${volumes} is emptied: the reclaim policy is Recycle.`,
      zh: zh`删除完成时，${volumes} 会被清空：回收策略为 Recycle。`,
    })),
    ...tell(stays, (volumes) => ({
      en: en`The data of ${volumes} stays when the claim goes: the reclaim policy is Retain.`,
      zh: zh`申领消失后，${volumes} 的数据会保留：回收策略为 Retain。`,
    })),
    ...tell(lost, (volumes) => ({
      en: en`The object of ${volumes} is missing or bound to another claim, so the end of the deletion reclaims nothing.`,
      zh: zh`${volumes} 的对象不存在，或已绑定到其他申领，因此删除完成时不会回收任何东西。`,
    })),
  ];
  if (told.length > 0) return sentences(...told);
  return { en: 'No volume is bound, so no data is at stake.', zh: '没有绑定任何卷，因此不涉及数据。' };
}

function tell(names: readonly string[], say: (volumes: Text) => Text): readonly Text[] {
  return names.length === 0 ? [] : [say(named(names, 'volume'))];
}

/** How long ago the first of these claims was deleted, in words. */
export function longestDeletion(held: readonly { readonly claim: Claim }[], now: number): Text {
  return duration(Math.max(...held.map(({ claim }) => deletingForMs(claim, now))));
}
