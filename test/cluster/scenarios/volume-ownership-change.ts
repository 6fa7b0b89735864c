import { execFile } from 'node:child_process';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { minutes } from '../../../src/domain/time.ts';
import { claim, listAt, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

/** Kubelet speaks of its work after thirty seconds; no setting shortens that. */
const SPEAKS_AFTER_MS = 31_000;
const FOLDERS = 200;
const FILES_IN_EACH = 2000;

export const volumeOwnershipChange = defineScenario({
  id: 'volume-ownership-change',
  kind: 'fault',
  title: 'kubelet gives hundreds of thousands of files to the group of a pod: slow, and nothing is wrong',
  // The machine is held meanwhile, and nobody shall take it for dead.
  bed: { flags: { kcm: ['--node-monitor-grace-period=600s'] } },
  faults: ['volume-ownership-change'],

  async provoke(bed) {
    const slow = await bed.disks.fail({ rpc: 'NodePublishVolume', delayMs: 600_000 });
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'], on: 'n1', spec: { securityContext: { fsGroup: 2000 } } }),
    );
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.until('the volume to be in use on n1', async () => {
      const node = await bed.api.get('node n1');
      return listAt(node, 'status.volumesInUse').length > 0;
    });
    const { uid } = (await bed.api.get('pod shop/one')).metadata;
    const mount = join(bed.root, 'm/n1/pods', uid, 'volumes/kubernetes.io~csi', volume.metadata.name, 'mount');
    await fill(mount);
    await bed.disks.heal(slow);
    // As if the disk were slow: the machine is held while kubelet walks over the files, until it is late enough.
    const machine = bed.machine('n1');
    await untilAnyIsGiven(mount);
    machine.hang();
    const began = performance.now();
    await bed.until('kubelet to have taken long', () => performance.now() - began > SPEAKS_AFTER_MS);
    machine.comeBack();
    await bed.untilEvent('shop', 'one', /Setting volume ownership for/);
    machine.hang();
    return {
      scope: 'pod shop/one',
      laterMs: minutes(2),
      found: [{ fault: 'volume-ownership-change', verdict: 'progress', subject: 'Pod shop/one' }],
    };
  },

  async recovered(bed) {
    bed.machine('n1').comeBack();
    await bed.untilReady('pod shop/one');
  },
  left: () => [],
});

/** Links to the same few files: the walk takes as long as over different ones. */
async function fill(folder: string): Promise<void> {
  const first = join(folder, 'd000');
  await mkdir(first, { recursive: true });
  for (let i = 0; i < FILES_IN_EACH; i += 1) await writeFile(join(first, `f${i}`), '', { mode: 0o600 });
  const copies = Array.from({ length: FOLDERS - 1 }, (_, i) => join(folder, `d${String(i + 1).padStart(3, '0')}`));
  for (const copy of copies) await promisify(execFile)('cp', ['-al', first, copy]);
}

/** Kubelet makes what it has visited readable for the group. */
async function untilAnyIsGiven(folder: string): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (performance.now() < deadline) {
    const { mode } = await stat(folder);
    const { mode: ofFirst } = await stat(join(folder, 'd000', 'f0'));
    if ((mode & 0o2000) !== 0 || (ofFirst & 0o060) !== 0) return;
  }
  throw new Error('kubelet did not begin to change the owner');
}
