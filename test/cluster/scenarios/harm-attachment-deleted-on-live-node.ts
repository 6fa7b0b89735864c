import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { findingsOf } from '../bed/diagnosis.ts';
import { at, claim, isBeingDeleted, isReady, type KubeObject, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const harmAttachmentDeletedOnLiveNode = defineScenario({
  id: 'harm-attachment-deleted-on-live-node',
  kind: 'harm',
  title: 'an attachment is deleted by hand on a node that is alive: two nodes write to one volume',
  faults: ['multi-attach-live-node'],
  withinSeconds: 300,
  harm: ['two-writers', 'unpublished-while-staged'],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/data'), pod('shop/one', { claims: ['data'], on: 'n1' }));
    await bed.untilReady('pod shop/one');
    await bed.apply(pod('shop/two', { claims: ['data'], on: 'n2' }));
    await bed.untilEvent('shop', 'two', /is already used by pod/);
    const volume = await bed.untilVolumeOf('shop/data');
    const handle = textAt(volume, 'spec.csi.volumeHandle');

    // What the bot says while a pod waits: it names who shares the volume, and offers nothing, least of all this.
    expect(await findingsOf(bed, minutes(20))).toEqual(['found multi-attach-live-node: Pod shop/one']);

    // Somebody takes the shortcut all the same, and again whenever the controller has given the volume back to n1: which
    // node gets it is chance. One that is deleted while it is being attached would block the controller for two minutes.
    const moved = async () => {
      if (isReady(await bed.api.find('pod shop/two'))) return true;
      const attachments = await bed.attachmentsOf(volume.metadata.name);
      const settled = attachments.find((one) => textAt(one, 'spec.nodeName') === 'n1' && isSettled(one));
      if (settled) await bed.api.delete(`va ${settled.metadata.name}`);
      return undefined;
    };
    await bed.until('the volume to move to n2', moved, 200_000);
    const disk = await bed.disks.find(handle);
    // Both machines hold it mounted, the storage system knows of one, and the first pod has noticed nothing.
    expect(disk?.stagedOn.toSorted()).toEqual(['i-n1', 'i-n2']);
    expect(disk?.publishedTo).toEqual(['i-n2']);
    expect(isReady(await bed.api.find('pod shop/one'))).toBe(true);
    const calls = (await bed.disks.calls()).filter((call) => call.volume === handle);
    const order = calls.map(({ rpc, node }) => `${rpc} ${node}`);
    expect(order).toContain('ControllerUnpublishVolume i-n1');
    expect(order).not.toContain('NodeUnstageVolume i-n1');
    return { scope: 'pvc shop/data', found: [] };
  },
});

function isSettled(attachment: KubeObject): boolean {
  const ageMs = Date.now() - Date.parse(attachment.metadata.creationTimestamp ?? '');
  return at(attachment, 'status.attached') === true && !isBeingDeleted(attachment) && ageMs > 5000;
}
