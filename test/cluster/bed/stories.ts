import type { Bed } from './bed.ts';
import { claim, deployment, isReady, type KubeObject, namespace, pod, prefers, textAt } from './objects.ts';

/** How many scenarios begin, and what several wait for in the same words. */

/** Two pods run with a claim each: `shop/one` with `shop/data`, and a bystander with `shop/other`. Gives the volume of `shop/data`. */
export async function startPair(bed: Bed): Promise<KubeObject> {
  await bed.apply(
    namespace('shop'),
    claim('shop/data'),
    pod('shop/one', { claims: ['data'] }),
    claim('shop/other'),
    pod('shop/beside', { claims: ['other'] }),
  );
  await bed.untilReady('pod shop/one');
  await bed.untilReady('pod shop/beside');
  return bed.untilVolumeOf('shop/data');
}

/** Deployment `shop/web` runs on n1 with `shop/data`, a bystander on n2 with `shop/other`. Gives the pod of web and its volume. */
export async function startWeb(bed: Bed): Promise<{ readonly old: KubeObject; readonly volume: KubeObject }> {
  await bed.apply(
    namespace('shop'),
    claim('shop/data'),
    deployment('shop/web', { claims: ['data'], spec: { affinity: prefers('n1') } }),
    claim('shop/other'),
    pod('shop/beside', { claims: ['other'], on: 'n2' }),
  );
  const old = await bed.untilPod('the pod of web to be Ready on n1', 'shop', 'web', isReady);
  await bed.untilReady('pod shop/beside');
  return { old, volume: await bed.untilVolumeOf('shop/data') };
}

/** Waits until the scheduler has put a replacement of that pod of `shop/web` on a node; it need not run there. */
export function untilReplaced(bed: Bed, old: KubeObject): Promise<KubeObject> {
  return bed.untilPod(
    'a replacement on another node',
    'shop',
    'web',
    (one) => one.metadata.uid !== old.metadata.uid && textAt(one, 'spec.nodeName') !== '',
  );
}
