import { expect } from 'vitest';
import { dig, names, text, WireClient } from './api-server.client.ts';
import { apiServerRefusals } from './api-server.refusals.ts';
import type { Runner, ServerUnderTest } from './api-server.runner.ts';

/**
 * What our code relies on of an API server, told over the wire. It runs on the simulated server and, unchanged, on a
 * real one: it needs somebody who may do everything, somebody who may do little, and works in a namespace of its own.
 */
export function apiServerSuite(runner: Runner, connect: () => Promise<ServerUnderTest>): void {
  const { describe, it, beforeAll, afterAll } = runner;
  describe('an API server', () => {
    let client: WireClient;
    let namespace = '';
    const claims = (): string => `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
    const leases = (): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const claim = (name: string, labels: Readonly<Record<string, string>> = {}): unknown => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, labels },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } },
    });
    const lease = (name: string, metadata: Readonly<Record<string, unknown>> = {}): unknown => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, ...metadata },
      spec: { holderIdentity: 'suite' },
    });

    beforeAll(async () => {
      client = new WireClient((await connect()).admin);
      const made = await client.send('POST', '/api/v1/namespaces', {
        body: { metadata: { generateName: 'conformance-' } },
      });
      expect(made.code).toBe(201);
      namespace = text(made.body, 'metadata', 'name');
    });

    afterAll(async () => {
      await client.send('DELETE', `/api/v1/namespaces/${namespace}`);
      await client.close();
    });

    it('tells its version and the resources of a group', async () => {
      const version = await client.send('GET', '/version');
      expect(text(version.body, 'gitVersion')).toMatch(/^v1\.\d+\.\d+/);
      const core = await client.send('GET', '/api/v1');
      expect(core.body).toMatchObject({ kind: 'APIResourceList', groupVersion: 'v1' });
      expect(core.body['resources']).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ name: 'persistentvolumeclaims', namespaced: true, kind: 'PersistentVolumeClaim' }),
        ]),
      );
      const groups = await client.send('GET', '/apis');
      expect(groups.body['groups']).toEqual(
        expect.arrayContaining([expect.objectContaining({ name: 'storage.k8s.io' })]),
      );
    });

    it('refuses a request with a wrong token by 401 and a Status', async () => {
      const reply = await client.send('GET', '/api/v1/nodes', { token: 'wrong' });
      expect(reply.code).toBe(401);
      expect(reply.body).toMatchObject({ kind: 'Status', status: 'Failure', reason: 'Unauthorized', code: 401 });
    });

    it('answers a missing object by 404 with reason, name and kind', async () => {
      const reply = await client.send('GET', `${claims()}/none`);
      expect(reply.code).toBe(404);
      expect(reply.body).toMatchObject({
        kind: 'Status',
        reason: 'NotFound',
        message: 'persistentvolumeclaims "none" not found',
        details: { name: 'none', kind: 'persistentvolumeclaims' },
      });
      const grouped = await client.send('GET', `/apis/apps/v1/namespaces/${namespace}/deployments/none`);
      expect(text(grouped.body, 'message')).toBe('deployments.apps "none" not found');
    });

    it('gives a new object uid, version and time, protects a claim, and refuses a second of that name', async () => {
      const made = await client.send('POST', claims(), { body: claim('fresh') });
      expect(made.code).toBe(201);
      expect(text(made.body, 'metadata', 'uid')).toMatch(/^[0-9a-f-]{36}$/);
      expect(text(made.body, 'metadata', 'resourceVersion')).toMatch(/^\d+$/);
      expect(text(made.body, 'metadata', 'creationTimestamp')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(dig(made.body, 'metadata', 'finalizers')).toEqual(['kubernetes.io/pvc-protection']);
      expect(text(made.body, 'status', 'phase')).toBe('Pending');
      const again = await client.send('POST', claims(), { body: claim('fresh') });
      expect(again.code).toBe(409);
      expect(again.body).toMatchObject({
        reason: 'AlreadyExists',
        message: 'persistentvolumeclaims "fresh" already exists',
      });
    });

    it('refuses to create in a namespace that does not exist', async () => {
      const reply = await client.send('POST', '/api/v1/namespaces/no-such-namespace/persistentvolumeclaims', {
        body: claim('x'),
      });
      expect(reply.code).toBe(404);
      expect(text(reply.body, 'message')).toBe('namespaces "no-such-namespace" not found');
    });

    it('pages a list: pages add up to the list, and what is created meanwhile is not in it', async () => {
      for (const name of ['page-a', 'page-b', 'page-c', 'page-d', 'page-e']) {
        await client.send('POST', leases(), { body: lease(name, { labels: { paged: 'yes' } }) });
      }
      const first = await client.send('GET', `${leases()}?limit=2&labelSelector=paged%3Dyes`);
      expect(names(first)).toEqual(['page-a', 'page-b']);
      await client.send('POST', leases(), { body: lease('page-bb', { labels: { paged: 'yes' } }) });
      const seen = [...names(first)];
      let token = text(first.body, 'metadata', 'continue');
      let pages = 1;
      while (token !== '' && pages < 10) {
        const next = await client.send(
          'GET',
          `${leases()}?limit=2&labelSelector=paged%3Dyes&continue=${encodeURIComponent(token)}`,
        );
        expect(text(next.body, 'metadata', 'resourceVersion')).toBe(text(first.body, 'metadata', 'resourceVersion'));
        seen.push(...names(next));
        token = text(next.body, 'metadata', 'continue');
        pages += 1;
      }
      expect(seen).toEqual(['page-a', 'page-b', 'page-c', 'page-d', 'page-e']);
      expect(pages).toBe(3);
    });

    it('refuses a malformed continue token by 400', async () => {
      const reply = await client.send('GET', `${leases()}?limit=2&continue=garbage`);
      expect(reply.code).toBe(400);
    });

    const selected: Readonly<Record<string, readonly string[]>> = {
      'app=one': ['sel-a', 'sel-b'],
      'app=one,tier!=back': ['sel-a'],
      'tier in (back,front)': ['sel-a', 'sel-b', 'sel-c'],
      'tier notin (back),app': ['sel-a'],
      '!tier,selected': ['sel-d'],
    };
    for (const [selector, expected] of Object.entries(selected)) {
      it(`selects by labels ${selector}`, async () => {
        const labels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
          'sel-a': { app: 'one', tier: 'front' },
          'sel-b': { app: 'one', tier: 'back' },
          'sel-c': { app: 'two', tier: 'back' },
          'sel-d': { selected: 'yes' },
        };
        for (const [name, own] of Object.entries(labels)) {
          await client.send('POST', leases(), { body: lease(name, { labels: own }) });
        }
        expect(names(await client.send('GET', `${leases()}?labelSelector=${encodeURIComponent(selector)}`))).toEqual(
          expected,
        );
      });
    }

    it('selects by metadata.name and by the indexed fields of pods, and refuses other fields by 400', async () => {
      await client.send('POST', leases(), { body: lease('field-a') });
      expect(names(await client.send('GET', `${leases()}?fieldSelector=metadata.name%3Dfield-a`))).toEqual(['field-a']);
      const pods = await client.send(
        'GET',
        `/api/v1/namespaces/${namespace}/pods?fieldSelector=spec.nodeName%3Dnowhere,status.phase%3DRunning`,
      );
      expect(pods.code).toBe(200);
      for (const path of [
        `${claims()}?fieldSelector=status.phase%3DBound`,
        '/api/v1/persistentvolumes?fieldSelector=spec.claimRef.name%3Dx',
        '/apis/storage.k8s.io/v1/volumeattachments?fieldSelector=spec.nodeName%3Dn1',
      ]) {
        const reply = await client.send('GET', path);
        expect([path, reply.code]).toEqual([path, 400]);
      }
    });

    it('watches from a version: added, modified, deleted, in that order', async () => {
      const list = await client.send('GET', leases());
      const version = text(list.body, 'metadata', 'resourceVersion');
      const events = await client.watch(`${leases()}?watch=true&resourceVersion=${version}`, 3, async () => {
        await client.send('POST', leases(), { body: lease('watched') });
        await client.mergePatch(`${leases()}/watched`, { spec: { holderIdentity: 'other' } });
        await client.send('DELETE', `${leases()}/watched`);
      });
      expect(events.map((event) => event['type'])).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
      expect(events.map((event) => text(event, 'object', 'kind'))).toEqual(['Lease', 'Lease', 'Lease']);
      const versions = events.map((event) => Number(text(event, 'object', 'metadata', 'resourceVersion')));
      expect([...versions].sort((a, b) => a - b)).toEqual(versions);
    });

    it('shows an object that stops matching a watched selector as deleted', async () => {
      const version = text((await client.send('GET', leases())).body, 'metadata', 'resourceVersion');
      const path = `${leases()}?watch=true&resourceVersion=${version}&labelSelector=moves%3Dyes`;
      const events = await client.watch(path, 2, async () => {
        await client.send('POST', leases(), { body: lease('mover', { labels: { moves: 'yes' } }) });
        await client.mergePatch(`${leases()}/mover`, { metadata: { labels: { moves: null } } });
      });
      expect(events.map((event) => event['type'])).toEqual(['ADDED', 'DELETED']);
    });

    it('refuses an update that carries an old version by 409', async () => {
      const made = await client.send('POST', leases(), { body: lease('stale') });
      await client.mergePatch(`${leases()}/stale`, { spec: { holderIdentity: 'faster' } });
      const reply = await client.send('PUT', `${leases()}/stale`, { body: made.body });
      expect(reply.code).toBe(409);
      expect(reply.body).toMatchObject({ reason: 'Conflict' });
      expect(text(reply.body, 'message')).toContain('the object has been modified');
    });

    describe('JSON Patch', () => {
      let uid = '';
      const path = (): string => `${claims()}/patched`;

      beforeAll(async () => {
        uid = text(
          (await client.send('POST', claims(), { body: claim('patched', { keep: 'me' }) })).body,
          'metadata',
          'uid',
        );
      });

      const failures: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
        'a test of another uid': { op: 'test', path: '/metadata/uid', value: 'other' },
        'a test of an absent value': { op: 'test', path: '/metadata/labels/none', value: 'x' },
        'a test of another list': { op: 'test', path: '/metadata/finalizers', value: [] },
        'a test of null for a value that is there': { op: 'test', path: '/metadata/labels', value: null },
        'a test of a finalizer that stands elsewhere': { op: 'test', path: '/metadata/finalizers/0', value: 'other' },
        'a removal of an absent path': { op: 'remove', path: '/metadata/labels/none' },
        'an addition to an absent list': { op: 'add', path: '/metadata/ownerReferences/-', value: {} },
        'an unknown operation': { op: 'put', path: '/metadata/labels' },
        'an operation without a path': { op: 'remove' },
        'an operation with a path that is no pointer': { op: 'remove', path: 'metadata/labels' },
      };
      for (const [what, failing] of Object.entries(failures)) {
        it(`applies nothing when ${what} fails, and says 422 Invalid without naming it`, async () => {
          const reply = await client.jsonPatch(path(), [
            { op: 'add', path: '/metadata/labels/new', value: 'x' },
            failing,
          ]);
          expect(reply.code).toBe(422);
          expect(reply.body).toMatchObject({
            reason: 'Invalid',
            message: 'the server rejected our request due to an error in our request',
          });
          expect(dig(reply.body, 'details', 'causes')).toBeUndefined();
          const after = await client.send('GET', path());
          expect(dig(after.body, 'metadata', 'labels')).toEqual({ keep: 'me' });
        });
      }

      it('compares whole lists and objects, and takes ~1 and ~0 in a path for / and ~', async () => {
        const reply = await client.send('PATCH', `${path()}?dryRun=All`, {
          type: 'application/json-patch+json',
          body: [
            { op: 'test', path: '/metadata/finalizers', value: ['kubernetes.io/pvc-protection'] },
            { op: 'test', path: '/metadata/labels', value: { keep: 'me' } },
            { op: 'add', path: '/metadata/annotations', value: { 'example.com/one': '1' } },
            { op: 'test', path: '/metadata/annotations/example.com~1one', value: '1' },
            { op: 'move', from: '/metadata/annotations/example.com~1one', path: '/metadata/annotations/two' },
            { op: 'copy', from: '/metadata/annotations/two', path: '/metadata/annotations/three' },
          ],
        });
        expect(reply.code).toBe(200);
        expect(dig(reply.body, 'metadata', 'annotations')).toEqual({ two: '1', three: '1' });
      });

      it('refuses more than 10000 operations by 413', async () => {
        const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/kind', value: 'x' }));
        const reply = await client.jsonPatch(path(), many);
        expect(reply.code).toBe(413);
        expect(reply.body).toMatchObject({ reason: 'RequestEntityTooLarge' });
      });

      it('takes a test of null for an absent key, and a replace of an absent key for an add', async () => {
        const reply = await client.jsonPatch(path(), [
          { op: 'test', path: '/metadata/uid', value: uid },
          { op: 'test', path: '/metadata/annotations', value: null },
          { op: 'replace', path: '/metadata/labels/added', value: 'yes' },
        ]);
        expect(reply.code).toBe(200);
        expect(dig(reply.body, 'metadata', 'labels')).toEqual({ keep: 'me', added: 'yes' });
      });

      it('refuses a patch that writes an old version by 409', async () => {
        const reply = await client.jsonPatch(path(), [
          { op: 'replace', path: '/metadata/resourceVersion', value: '1' },
        ]);
        expect(reply.code).toBe(409);
      });

      it('refuses a body that is no patch by 400', async () => {
        expect((await client.send('PATCH', path(), { raw: '{"a":', type: 'application/json-patch+json' })).code).toBe(
          400,
        );
        expect((await client.send('PATCH', path(), { body: { a: 1 }, type: 'application/json-patch+json' })).code).toBe(
          400,
        );
      });

      it('refuses a change of an immutable field by 422 with causes', async () => {
        const reply = await client.jsonPatch(path(), [
          { op: 'replace', path: '/spec/accessModes', value: ['ReadWriteMany'] },
        ]);
        expect(reply.code).toBe(422);
        expect(reply.body).toMatchObject({
          reason: 'Invalid',
          details: { name: 'patched', kind: 'PersistentVolumeClaim' },
        });
        expect(text(reply.body, 'details', 'causes', 0, 'field')).toBe('spec');
      });
    });

    it('replaces lists and removes nulls in a merge patch', async () => {
      await client.send('POST', leases(), {
        body: lease('merged', { finalizers: ['example.com/a', 'example.com/b'], labels: { a: '1', b: '2' } }),
      });
      const reply = await client.mergePatch(`${leases()}/merged`, {
        metadata: { finalizers: ['example.com/c'], labels: { a: null } },
      });
      expect(dig(reply.body, 'metadata', 'finalizers')).toEqual(['example.com/c']);
      expect(dig(reply.body, 'metadata', 'labels')).toEqual({ b: '2' });
      await client.mergePatch(`${leases()}/merged`, { metadata: { finalizers: null } });
    });

    it('refuses an unknown media type of a patch by 415', async () => {
      expect((await client.send('PATCH', `${leases()}/merged`, { body: {}, type: 'text/plain' })).code).toBe(415);
    });

    it('deletes only what the preconditions name', async () => {
      const made = await client.send('POST', leases(), { body: lease('guarded') });
      const uid = text(made.body, 'metadata', 'uid');
      const old = text(made.body, 'metadata', 'resourceVersion');
      await client.mergePatch(`${leases()}/guarded`, { spec: { holderIdentity: 'x' } });
      for (const preconditions of [{ uid: '00000000-0000-0000-0000-000000000000' }, { uid, resourceVersion: old }]) {
        const refused = await client.send('DELETE', `${leases()}/guarded`, { body: { preconditions } });
        expect(refused.code).toBe(409);
        expect(refused.body).toMatchObject({ reason: 'Conflict' });
      }
      const done = await client.send('DELETE', `${leases()}/guarded`, { body: { preconditions: { uid } } });
      expect(done.code).toBe(200);
      expect((await client.send('GET', `${leases()}/guarded`)).code).toBe(404);
    });

    it('changes nothing in a dry run, but refuses what it would refuse', async () => {
      expect((await client.send('POST', `${leases()}?dryRun=All`, { body: lease('dry') })).code).toBe(201);
      expect((await client.send('GET', `${leases()}/dry`)).code).toBe(404);
      const made = await client.send('POST', leases(), { body: lease('dry') });
      const patched = await client.send('PATCH', `${leases()}/dry?dryRun=All`, {
        body: { spec: { holderIdentity: 'dry-run' } },
        type: 'application/merge-patch+json',
      });
      expect(text(patched.body, 'spec', 'holderIdentity')).toBe('dry-run');
      expect((await client.send('DELETE', `${leases()}/dry`, { body: { dryRun: ['All'] } })).code).toBe(200);
      expect((await client.send('DELETE', `${leases()}/dry?dryRun=All`)).code).toBe(200);
      const after = await client.send('GET', `${leases()}/dry`);
      expect(text(after.body, 'metadata', 'resourceVersion')).toBe(text(made.body, 'metadata', 'resourceVersion'));
      const refused = await client.send('DELETE', `${leases()}/dry`, {
        body: { dryRun: ['All'], preconditions: { uid: 'other' } },
      });
      expect(refused.code).toBe(409);
    });

    it('keeps a deleted object until its last finalizer goes, and takes no new one meanwhile', async () => {
      await client.send('POST', leases(), {
        body: lease('held', { finalizers: ['example.com/one', 'example.com/two'] }),
      });
      const deleted = await client.send('DELETE', `${leases()}/held`);
      expect(deleted.code).toBe(200);
      expect(text(deleted.body, 'metadata', 'deletionTimestamp')).not.toBe('');
      const added = await client.jsonPatch(`${leases()}/held`, [
        { op: 'add', path: '/metadata/finalizers/-', value: 'example.com/late' },
      ]);
      expect(added.code).toBe(422);
      expect(text(added.body, 'message')).toContain('no new finalizers can be added if the object is being deleted');
      const one = await client.jsonPatch(`${leases()}/held`, [
        { op: 'test', path: '/metadata/finalizers/0', value: 'example.com/one' },
        { op: 'remove', path: '/metadata/finalizers/0' },
      ]);
      expect(dig(one.body, 'metadata', 'finalizers')).toEqual(['example.com/two']);
      const last = await client.jsonPatch(`${leases()}/held`, [
        { op: 'test', path: '/metadata/finalizers/0', value: 'example.com/two' },
        { op: 'remove', path: '/metadata/finalizers/0' },
      ]);
      expect(last.code).toBe(200);
      expect((await client.send('GET', `${leases()}/held`)).code).toBe(404);
    });

    it('deletes a collection by selector, and nothing else', async () => {
      for (const name of ['many-a', 'many-b'])
        await client.send('POST', leases(), { body: lease(name, { labels: { many: 'yes' } }) });
      await client.send('POST', leases(), { body: lease('one-c') });
      expect((await client.send('DELETE', `${leases()}?labelSelector=many%3Dyes`)).code).toBe(200);
      expect(names(await client.send('GET', `${leases()}?labelSelector=many%3Dyes`))).toEqual([]);
      expect((await client.send('GET', `${leases()}/one-c`)).code).toBe(200);
    });

    it('scales a Deployment through its subresource, where 0 replicas are an absent field', async () => {
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
      const labels = { app: 'scaled' };
      await client.send('POST', path, {
        body: {
          metadata: { name: 'scaled' },
          spec: {
            replicas: 0,
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: { schedulerName: 'nobody', containers: [{ name: 'app', image: 'sim/pause:1' }] },
            },
          },
        },
      });
      const scale = await client.send('GET', `${path}/scaled/scale`);
      expect(scale.body).toMatchObject({
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: { name: 'scaled' },
        status: { selector: 'app=scaled' },
      });
      expect(dig(scale.body, 'spec', 'replicas')).toBeUndefined();
      expect(
        (await client.jsonPatch(`${path}/scaled/scale`, [{ op: 'test', path: '/spec/replicas', value: 0 }])).code,
      ).toBe(422);
      const up = await client.jsonPatch(`${path}/scaled/scale`, [{ op: 'add', path: '/spec/replicas', value: 2 }]);
      expect(dig(up.body, 'spec', 'replicas')).toBe(2);
      const deployment = await client.send('GET', `${path}/scaled`);
      expect(dig(deployment.body, 'spec', 'replicas')).toBe(2);
      expect(dig(deployment.body, 'metadata', 'generation')).toBe(2);
    });

    it('refuses Recreate together with rolling-update limits, and takes it when the strategy is replaced whole', async () => {
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments/scaled`;
      expect(
        (await client.jsonPatch(path, [{ op: 'replace', path: '/spec/strategy/type', value: 'Recreate' }])).code,
      ).toBe(422);
      const replaced = await client.jsonPatch(path, [
        { op: 'replace', path: '/spec/strategy', value: { type: 'Recreate' } },
      ]);
      expect(dig(replaced.body, 'spec', 'strategy')).toEqual({ type: 'Recreate' });
    });

    it('ignores a status that is written through the main resource', async () => {
      const reply = await client.mergePatch(`${claims()}/fresh`, { status: { phase: 'Lost' } });
      expect(reply.code).toBe(200);
      expect(text(reply.body, 'status', 'phase')).toBe('Pending');
    });

    it('refuses malformed JSON and a wrong name by 4xx and a Status', async () => {
      const malformed = await client.send('POST', claims(), { raw: '{"metadata":' });
      expect(malformed.code).toBe(400);
      expect(malformed.body).toMatchObject({ kind: 'Status', reason: 'BadRequest' });
      const named = await client.send('POST', claims(), { body: claim('Not_A_Name') });
      expect(named.code).toBe(422);
      expect(text(named.body, 'details', 'causes', 0, 'field')).toBe('metadata.name');
    });

    it('answers whether the caller may do something', async () => {
      const reply = await client.send('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        body: { spec: { resourceAttributes: { verb: 'delete', resource: 'pods', namespace } } },
      });
      expect(reply.code).toBe(201);
      expect(dig(reply.body, 'status', 'allowed')).toBe(true);
    });

    it('answers with the Audit-ID that the request carries', async () => {
      const id = 'b3b0e6d2-0c6f-4d8e-9f0b-3c1f6f0a7e11';
      const reply = await client.send('GET', '/api/v1/namespaces', { headers: { 'Audit-ID': id } });
      expect(reply.headers.get('audit-id')).toBe(id);
    });

    it('answers the metadata alone when asked to', async () => {
      const reply = await client.send('GET', claims(), {
        headers: { Accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' },
      });
      expect(reply.body['kind']).toBe('PartialObjectMetadataList');
      expect(dig(reply.body, 'items', 0, 'spec')).toBeUndefined();
      expect(text(reply.body, 'items', 0, 'metadata', 'uid')).not.toBe('');
    });
  });

  apiServerRefusals(runner, connect);
}
