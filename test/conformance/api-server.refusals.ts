import { expect } from 'vitest';
import type { Reply, Send } from './api-server.client.ts';
import { dig, names, text, WireClient } from './api-server.client.ts';
import { LIMITED, type Runner, type ServerUnderTest } from './api-server.runner.ts';

const OTHER_UID = '22222222-2222-4222-8222-222222222222';
const REVIEWS = '/apis/authorization.k8s.io/v1';

/** The other half of the suite: conditions, deletion, status, what is forgotten, and every refusal word for word. */
export function apiServerRefusals(runner: Runner, connect: () => Promise<ServerUnderTest>): void {
  const { describe, it, beforeAll, afterAll } = runner;
  describe('an API server that is held to conditions and rights', () => {
    let server: ServerUnderTest;
    let client: WireClient;
    let limited: WireClient;
    let namespace = '';
    const inNamespace = (resource: string, group = ''): string =>
      `${group === '' ? '/api/v1' : `/apis/${group}/v1`}/namespaces/${namespace}/${resource}`;
    const leases = (): string => inNamespace('leases', 'coordination.k8s.io');
    const claims = (): string => inNamespace('persistentvolumeclaims');
    const pods = (): string => inNamespace('pods');
    const lease = (name: string, metadata: Readonly<Record<string, unknown>> = {}): unknown => ({
      metadata: { name, ...metadata },
      spec: { holderIdentity: 'suite' },
    });
    const claim = (name: string, spec: Readonly<Record<string, unknown>> = {}): unknown => ({
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
        resources: { requests: { storage: '1Gi' } },
        ...spec,
      },
    });
    const pod = (name: string, spec: Readonly<Record<string, unknown>> = {}): unknown => ({
      metadata: { name },
      spec: { schedulerName: 'nobody', containers: [{ name: 'app', image: 'sim/pause:1' }], ...spec },
    });
    const make = async (path: string, body: unknown): Promise<Reply> => {
      const made = await client.send('POST', path, { body });
      expect(made.code, text(made.body, 'message')).toBe(201);
      return made;
    };
    const meta = (reply: Reply, key: string): unknown => dig(reply.body, 'metadata', key);

    beforeAll(async () => {
      server = await connect();
      client = new WireClient(server.admin);
      limited = new WireClient(server.limited);
      const made = await make('/api/v1/namespaces', { metadata: { generateName: 'conformance-' } });
      namespace = text(made.body, 'metadata', 'name');
    });

    afterAll(async () => {
      await client.send('DELETE', `/api/v1/namespaces/${namespace}`);
      await Promise.all([client.close(), limited.close()]);
    });

    describe('conditions', () => {
      it('takes no uid, time or deletion from whoever creates', async () => {
        const made = await make(
          leases(),
          lease('own-uid', { uid: OTHER_UID, deletionTimestamp: '2020-01-01T00:00:00Z' }),
        );
        expect(meta(made, 'uid')).not.toBe(OTHER_UID);
        expect(meta(made, 'deletionTimestamp')).toBeUndefined();
      });

      it('refuses an update under another uid by 409, word for word', async () => {
        const made = await make(leases(), lease('uid'));
        const uid = text(made.body, 'metadata', 'uid');
        const metadata = { ...looseOf(made.body['metadata']), uid: OTHER_UID };
        const reply = await client.send('PUT', `${leases()}/uid`, { body: { ...made.body, metadata } });
        expect(reply.code).toBe(409);
        expect(reply.body).toMatchObject({
          reason: 'Conflict',
          details: { name: 'uid', group: 'coordination.k8s.io', kind: 'leases' },
        });
        expect(text(reply.body, 'message')).toContain(
          `Precondition failed: UID in precondition: ${OTHER_UID}, UID in object meta: ${uid}`,
        );
      });

      it('tells of a failed condition of a delete, with the kind and both values', async () => {
        const made = await make(leases(), lease('pre'));
        const { uid, resourceVersion } = looseOf(made.body['metadata']);
        const refused = async (preconditions: unknown) =>
          client.send('DELETE', `${leases()}/pre`, { body: { preconditions } });
        expect((await refused({ uid: OTHER_UID })).body).toEqual({
          kind: 'Status',
          apiVersion: 'v1',
          metadata: {},
          status: 'Failure',
          message: `Operation cannot be fulfilled on Lease.coordination.k8s.io "pre": the UID in the precondition (${OTHER_UID}) does not match the UID in record (${String(uid)}). The object might have been deleted and then recreated`,
          reason: 'Conflict',
          details: { name: 'pre', group: 'coordination.k8s.io', kind: 'Lease' },
          code: 409,
        });
        expect(text((await refused({ uid, resourceVersion: '1' })).body, 'message')).toBe(
          `Operation cannot be fulfilled on Lease.coordination.k8s.io "pre": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${String(resourceVersion)}). The object might have been modified`,
        );
        expect((await refused({ uid, resourceVersion })).code).toBe(200);
      });

      it('refuses to patch a uid by 422 and an old version by 409', async () => {
        await make(leases(), lease('meta'));
        const patch = (metadata: unknown) => client.mergePatch(`${leases()}/meta`, { metadata });
        const uid = await patch({ uid: OTHER_UID });
        expect(uid.code).toBe(422);
        // 1.36 says it twice.
        expect(dig(uid.body, 'details', 'causes', 0)).toEqual({
          reason: 'FieldValueInvalid',
          message: `Invalid value: "${OTHER_UID}": field is immutable`,
          field: 'metadata.uid',
        });
        expect((await patch({ resourceVersion: '1' })).body).toMatchObject({
          code: 409,
          reason: 'Conflict',
          message:
            'Operation cannot be fulfilled on leases.coordination.k8s.io "meta": the object has been modified; please apply your changes to the latest version and try again',
          details: { name: 'meta', group: 'coordination.k8s.io', kind: 'leases' },
        });
        const named = await patch({ name: 'other' });
        expect(named.code).toBe(400);
        expect(text(named.body, 'message')).toBe(
          'the name of the object (other) does not match the name on the URL (meta)',
        );
      });

      it('demands a version where a kind is never overwritten unseen, and none where it may be', async () => {
        await make(leases(), lease('unseen'));
        const reply = await client.send('PUT', `${leases()}/unseen`, { body: lease('unseen') });
        expect(reply.code).toBe(422);
        expect(dig(reply.body, 'details', 'causes')).toEqual([
          {
            reason: 'FieldValueInvalid',
            message: 'Invalid value: 0: must be specified for an update',
            field: 'metadata.resourceVersion',
          },
        ]);
        await make(claims(), claim('unseen'));
        expect(
          (await client.send('PUT', `${claims()}/unseen`, { body: claim('unseen', { volumeMode: 'Filesystem' }) }))
            .code,
        ).toBe(200);
      });

      it('leaves the version alone when a patch changes nothing', async () => {
        const made = await make(leases(), lease('same'));
        const reply = await client.mergePatch(`${leases()}/same`, { spec: { holderIdentity: 'suite' } });
        expect(meta(reply, 'resourceVersion')).toBe(meta(made, 'resourceVersion'));
      });
    });

    describe('deletion', () => {
      it('keeps the time of the first deletion, and nobody takes it off', async () => {
        await make(leases(), lease('dying', { finalizers: ['example.com/held'] }));
        const first = meta(await client.send('DELETE', `${leases()}/dying`), 'deletionTimestamp');
        expect(typeof first).toBe('string');
        expect(meta(await client.send('DELETE', `${leases()}/dying`), 'deletionTimestamp')).toBe(first);
        const patched = await client.mergePatch(`${leases()}/dying`, {
          metadata: { deletionTimestamp: null, labels: { still: 'here' } },
        });
        expect(patched.code).toBe(200);
        expect(meta(patched, 'deletionTimestamp')).toBe(first);
        await make(leases(), lease('living'));
        const marked = await client.mergePatch(`${leases()}/living`, {
          metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' },
        });
        expect(marked.code).toBe(422);
        expect(dig(marked.body, 'details', 'causes', 0, 'field')).toBe('metadata.deletionTimestamp');
        expect((await client.mergePatch(`${leases()}/dying`, { metadata: { finalizers: null } })).code).toBe(200);
        expect((await client.send('GET', `${leases()}/dying`)).code).toBe(404);
      });

      it('adds the finalizer that the policy asks for', async () => {
        await make(leases(), lease('policy', { finalizers: ['example.com/held'] }));
        const reply = await client.send('DELETE', `${leases()}/policy`, { body: { propagationPolicy: 'Foreground' } });
        expect(meta(reply, 'finalizers')).toEqual(['example.com/held', 'foregroundDeletion']);
        await client.mergePatch(`${leases()}/policy`, { metadata: { finalizers: null } });
      });

      it('gives the object as it last was where its kind answers with one', async () => {
        await make(claims(), claim('last'));
        await client.mergePatch(`${claims()}/last`, { metadata: { finalizers: null } });
        const reply = await client.send('DELETE', `${claims()}/last`);
        expect(reply.body).toMatchObject({ kind: 'PersistentVolumeClaim', metadata: { name: 'last' } });
        expect(meta(reply, 'deletionTimestamp')).toBeUndefined();
        await make(leases(), lease('status'));
        const status = await client.send('DELETE', `${leases()}/status`);
        expect(status.body).toMatchObject({
          kind: 'Status',
          status: 'Success',
          details: { name: 'status', group: 'coordination.k8s.io', kind: 'leases' },
        });
      });

      it('lets a pod on a node have its grace, which only gets shorter, and ends it at once with none', async () => {
        await make(pods(), pod('grace', { nodeName: 'nowhere' }));
        const remove = (gracePeriodSeconds: number) =>
          client.send('DELETE', `${pods()}/grace`, { body: { gracePeriodSeconds } });
        const first = await remove(20);
        expect(meta(first, 'deletionGracePeriodSeconds')).toBe(20);
        expect(meta(first, 'generation')).toBe(2);
        expect(meta(await remove(25), 'deletionTimestamp')).toBe(meta(first, 'deletionTimestamp'));
        expect(meta(await remove(5), 'deletionGracePeriodSeconds')).toBe(5);
        const last = await remove(0);
        expect(last.code).toBe(200);
        expect(meta(last, 'deletionGracePeriodSeconds')).toBe(0);
        expect((await client.send('GET', `${pods()}/grace`)).code).toBe(404);
      });

      it('ends a pod without a node, and one that has finished, at once', async () => {
        await make(pods(), pod('free'));
        expect((await client.send('DELETE', `${pods()}/free`)).code).toBe(200);
        expect((await client.send('GET', `${pods()}/free`)).code).toBe(404);
        await make(pods(), pod('done', { nodeName: 'nowhere' }));
        await client.mergePatch(`${pods()}/done/status`, { status: { phase: 'Succeeded' } });
        expect((await client.send('DELETE', `${pods()}/done`)).code).toBe(200);
        expect((await client.send('GET', `${pods()}/done`)).code).toBe(404);
      });

      it('takes nothing new into a namespace that is going', async () => {
        await make('/api/v1/namespaces', {
          metadata: { name: `${namespace}-going`, finalizers: ['example.com/held'] },
        });
        await client.send('DELETE', `/api/v1/namespaces/${namespace}-going`);
        const reply = await client.send('POST', `/api/v1/namespaces/${namespace}-going/pods`, { body: pod('late') });
        expect(reply.code).toBe(403);
        expect(reply.body).toMatchObject({
          reason: 'Forbidden',
          message: `pods "late" is forbidden: unable to create new content in namespace ${namespace}-going because it is being terminated`,
          details: {
            name: 'late',
            kind: 'pods',
            causes: [
              {
                reason: 'NamespaceTerminating',
                message: `namespace ${namespace}-going is being terminated`,
                field: 'metadata.namespace',
              },
            ],
          },
        });
        await client.mergePatch(`/api/v1/namespaces/${namespace}-going`, { metadata: { finalizers: null } });
      });
    });

    describe('dry runs', () => {
      it('shows a deletion and its finalizers as they would be, and keeps the object as it is', async () => {
        const made = await make(leases(), lease('kept', { finalizers: ['example.com/held'] }));
        const shown = await client.send('DELETE', `${leases()}/kept?dryRun=All`);
        expect(typeof meta(shown, 'deletionTimestamp')).toBe('string');
        const after = await client.send('GET', `${leases()}/kept`);
        expect(meta(after, 'resourceVersion')).toBe(meta(made, 'resourceVersion'));
        expect(meta(after, 'deletionTimestamp')).toBeUndefined();
      });

      it('writes neither a status nor a scale nor a collection', async () => {
        await make(claims(), claim('dry'));
        const status = await client.send('PATCH', `${claims()}/dry/status?dryRun=All`, {
          body: { status: { phase: 'Bound' } },
          type: 'application/merge-patch+json',
        });
        expect(text(status.body, 'status', 'phase')).toBe('Bound');
        expect(text((await client.send('GET', `${claims()}/dry`)).body, 'status', 'phase')).toBe('Pending');
        const before = names(await client.send('GET', leases()));
        expect((await client.send('DELETE', `${leases()}?dryRun=All`)).code).toBe(200);
        expect(names(await client.send('GET', leases()))).toEqual(before);
      });

      const unknown: readonly [string, () => string, Send, string][] = [
        ['POST', leases, { body: lease('some') }, 'CreateOptions'],
        ['PATCH', () => `${leases()}/same`, { body: {}, type: 'application/merge-patch+json' }, 'PatchOptions'],
        ['DELETE', () => `${leases()}/same`, {}, 'DeleteOptions'],
      ];
      for (const [method, path, send, options] of unknown) {
        it(`refuses a dry run of another kind by 422: ${method}`, async () => {
          const reply = await client.send(method, `${path()}?dryRun=Some`, send);
          expect(reply.code).toBe(422);
          expect(reply.body).toMatchObject({
            reason: 'Invalid',
            message: `${options}.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`,
            details: { group: 'meta.k8s.io', kind: options },
          });
        });
      }
    });

    describe('status', () => {
      it('is the only thing that its subresource writes, and the main resource leaves it alone', async () => {
        const made = await make(claims(), {
          ...looseOf(claim('status')),
          status: { phase: 'Bound' },
        });
        expect(text(made.body, 'status', 'phase')).toBe('Pending');
        const written = await client.mergePatch(`${claims()}/status/status`, {
          status: { phase: 'Bound', accessModes: ['ReadWriteOnce'] },
          spec: { volumeName: 'sneaked-in' },
        });
        expect(text(written.body, 'status', 'phase')).toBe('Bound');
        expect(dig(written.body, 'spec', 'volumeName')).toBeUndefined();
        expect(Number(meta(written, 'resourceVersion'))).toBeGreaterThan(Number(meta(made, 'resourceVersion')));
        const main = await client.jsonPatch(`${claims()}/status`, [
          { op: 'test', path: '/status/phase', value: 'Bound' },
          { op: 'replace', path: '/status/phase', value: 'Lost' },
          { op: 'add', path: '/metadata/labels', value: { written: 'yes' } },
        ]);
        expect(text(main.body, 'status', 'phase')).toBe('Bound');
        expect(dig(main.body, 'metadata', 'labels')).toEqual({ written: 'yes' });
        expect((await client.send('GET', `${claims()}/status/status`)).body).toMatchObject({
          kind: 'PersistentVolumeClaim',
        });
      });

      it('does not raise the generation of a workload, and a changed spec does', async () => {
        const deployments = inNamespace('deployments', 'apps');
        await make(deployments, {
          metadata: { name: 'generation' },
          spec: {
            selector: { matchLabels: { app: 'generation' } },
            template: {
              metadata: { labels: { app: 'generation' } },
              spec: { schedulerName: 'nobody', containers: [{ name: 'app', image: 'sim/pause:1' }] },
            },
          },
        });
        const path = `${deployments}/generation`;
        const status = await client.mergePatch(`${path}/status`, { status: { observedGeneration: 1 } });
        expect(meta(status, 'generation')).toBe(1);
        expect(meta(await client.mergePatch(path, { metadata: { labels: { a: 'b' } } }), 'generation')).toBe(1);
        expect(meta(await client.mergePatch(path, { spec: { paused: true } }), 'generation')).toBe(2);
      });

      it('exists only where a kind has one', async () => {
        await make(leases(), lease('no-status'));
        const reply = await client.send('GET', `${leases()}/no-status/status`);
        expect(reply.code).toBe(404);
        expect(reply.body).toMatchObject({
          reason: 'NotFound',
          message: 'the server could not find the requested resource',
          details: {},
        });
      });
    });

    describe('what is forgotten', () => {
      const page = (token: string): string =>
        `${leases()}?limit=2&labelSelector=old%3Dyes${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`;

      it('answers a token of a forgotten state by 410, with one that goes on without what was seen', async () => {
        for (const name of ['old-a', 'old-b', 'old-c', 'old-d', 'old-e'])
          await make(leases(), lease(name, { labels: { old: 'yes' } }));
        const first = await client.send('GET', page(''));
        await client.send('DELETE', `${leases()}/old-d`);
        await server.forget();
        const gone = await client.send('GET', page(text(first.body, 'metadata', 'continue')));
        expect(gone.code).toBe(410);
        expect(gone.body).toMatchObject({ kind: 'Status', status: 'Failure', reason: 'Expired', code: 410 });
        expect(text(gone.body, 'message')).toMatch(
          /^The provided continue parameter is too old to display a consistent list result\./,
        );
        const rest = await client.send('GET', page(text(gone.body, 'metadata', 'continue')));
        expect(names(rest)).toEqual(['old-c', 'old-e']);
      });

      it('tells a watch from a forgotten state so in its stream, by 410', async () => {
        const version = text((await client.send('GET', leases())).body, 'metadata', 'resourceVersion');
        for (const name of ['after', 'much-after']) await make(leases(), lease(name));
        await server.forget();
        const [event] = await client.watch(`${leases()}?watch=true&resourceVersion=${version}`, 1);
        expect(event).toMatchObject({
          type: 'ERROR',
          object: { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410 },
        });
      });

      it('goes on watching from the newest state after that', async () => {
        await make(leases(), lease('last-but-one'));
        await server.forget();
        const version = text((await client.send('GET', leases())).body, 'metadata', 'resourceVersion');
        const events = await client.watch(`${leases()}?watch=true&resourceVersion=${version}`, 1, () =>
          make(leases(), lease('newest')),
        );
        expect(text(events[0], 'object', 'metadata', 'name')).toBe('newest');
      });
    });

    describe('lists and watches', () => {
      it('counts what is left only where nothing is selected', async () => {
        for (const name of ['a', 'b', 'c']) await make(claims(), claim(`count-${name}`));
        const all = names(await client.send('GET', claims()));
        const page = await client.send('GET', `${claims()}?limit=1`);
        expect(meta(page, 'remainingItemCount')).toBe(all.length - 1);
        const selective = await client.send('GET', `${claims()}?limit=1&labelSelector=%21none`);
        expect(text(selective.body, 'metadata', 'continue')).not.toBe('');
        expect(meta(selective, 'remainingItemCount')).toBeUndefined();
        const whole = await client.send('GET', `${claims()}?limit=${all.length}`);
        expect(meta(whole, 'continue')).toBeUndefined();
        expect(names(whole)).toEqual(all);
      });

      it('begins a watch with what is there, then marks the end of it where asked to', async () => {
        await make(leases(), lease('initial', { labels: { initial: 'yes' } }));
        const path = `${leases()}?watch=true&labelSelector=initial%3Dyes`;
        const [added] = await client.watch(path, 1);
        expect(added).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'initial' } } });
        const events = await client.watch(
          `${path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
          2,
        );
        expect(events.map((event) => event['type'])).toEqual(['ADDED', 'BOOKMARK']);
        expect(dig(events[1], 'object', 'metadata', 'annotations', 'k8s.io/initial-events-end')).toBe('true');
        const refused = await client.send('GET', `${path}&sendInitialEvents=true`);
        expect(refused.code).toBe(422);
        expect(text(refused.body, 'message')).toContain('sendInitialEvents requires setting resourceVersionMatch');
      });

      it('watches one object by its name alone', async () => {
        const version = text((await client.send('GET', leases())).body, 'metadata', 'resourceVersion');
        const path = `${leases()}?watch=true&resourceVersion=${version}&fieldSelector=metadata.name%3Dthis`;
        const events = await client.watch(path, 2, async () => {
          await make(leases(), lease('that'));
          await make(leases(), lease('this'));
          await client.send('DELETE', `${leases()}/this`);
        });
        expect(events.map((event) => [event['type'], text(event, 'object', 'metadata', 'name')])).toEqual([
          ['ADDED', 'this'],
          ['DELETED', 'this'],
        ]);
      });

      const malformed: Readonly<Record<string, string>> = {
        'labelSelector=a%20b': 'unable to parse requirement',
        'labelSelector=a%20in%20b': 'unable to parse requirement',
        'labelSelector=-a%3Db': 'unable to parse requirement',
        'fieldSelector=what': "invalid selector: 'what'; can't understand 'what'",
        'fieldSelector=spec.holderIdentity%3Dx':
          '"spec.holderIdentity" is not a known field selector: only "metadata.name", "metadata.namespace"',
        'limit=x': 'invalid syntax',
        'resourceVersion=abc': 'Invalid value: "abc"',
        'limit=2&continue=garbage': 'continue key is not valid',
      };
      for (const [query, says] of Object.entries(malformed)) {
        it(`refuses the malformed ${query} by 400`, async () => {
          const reply = await client.send('GET', `${leases()}?${query}`);
          expect(reply.body).toMatchObject({ kind: 'Status', status: 'Failure', reason: 'BadRequest', code: 400 });
          expect(text(reply.body, 'message')).toContain(says);
        });
      }
    });

    describe('refusals', () => {
      interface Refusal {
        readonly what: string;
        readonly method: string;
        readonly path: () => string;
        readonly send?: Send;
        readonly body: Readonly<Record<string, unknown>>;
      }
      const failure = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' };
      const refusals: readonly Refusal[] = [
        {
          what: 'an absent object',
          method: 'DELETE',
          path: () => `${leases()}/none`,
          body: {
            ...failure,
            message: 'leases.coordination.k8s.io "none" not found',
            reason: 'NotFound',
            details: { name: 'none', group: 'coordination.k8s.io', kind: 'leases' },
            code: 404,
          },
        },
        {
          what: 'an absent object of a scale',
          method: 'GET',
          path: () => `${inNamespace('deployments', 'apps')}/none/scale`,
          body: {
            ...failure,
            message: 'deployments.apps "none" not found',
            reason: 'NotFound',
            details: { name: 'none', group: 'apps', kind: 'deployments' },
            code: 404,
          },
        },
        {
          what: 'a kind that does not exist',
          method: 'GET',
          path: () => '/apis/storage.k8s.io/v1/nothings',
          body: {
            ...failure,
            message: 'the server could not find the requested resource',
            reason: 'NotFound',
            details: {},
            code: 404,
          },
        },
        {
          what: 'a method that a path does not know',
          method: 'PUT',
          path: leases,
          send: { body: {} },
          body: {
            ...failure,
            message: 'the server does not allow this method on the requested resource',
            reason: 'MethodNotAllowed',
            details: {},
            code: 405,
          },
        },
        {
          what: 'another namespace than that of the path',
          method: 'POST',
          path: leases,
          send: { body: lease('elsewhere', { namespace: 'elsewhere' }) },
          body: {
            ...failure,
            message: 'the namespace of the provided object does not match the namespace sent on the request',
            reason: 'BadRequest',
            code: 400,
          },
        },
        {
          what: 'an object without a name',
          method: 'POST',
          path: leases,
          send: { body: { metadata: {} } },
          body: {
            ...failure,
            message:
              'Lease.coordination.k8s.io "" is invalid: metadata.name: Required value: name or generateName is required',
            reason: 'Invalid',
            details: {
              group: 'coordination.k8s.io',
              kind: 'Lease',
              causes: [
                {
                  reason: 'FieldValueRequired',
                  message: 'Required value: name or generateName is required',
                  field: 'metadata.name',
                },
              ],
            },
            code: 422,
          },
        },
        {
          what: 'a new object with a version',
          method: 'POST',
          path: leases,
          send: { body: lease('versioned', { resourceVersion: '5' }) },
          body: { ...failure, message: 'resourceVersion should not be set on objects to be created', code: 500 },
        },
        {
          what: 'a finalizer without a domain',
          method: 'POST',
          path: claims,
          send: { body: { ...looseOf(claim('finalizer')), metadata: { name: 'finalizer', finalizers: ['nope'] } } },
          body: {
            ...failure,
            message:
              'PersistentVolumeClaim "finalizer" is invalid: metadata.finalizers[0]: Invalid value: "nope": name is neither a standard finalizer name nor is it fully qualified',
            reason: 'Invalid',
            details: {
              name: 'finalizer',
              kind: 'PersistentVolumeClaim',
              causes: [
                {
                  reason: 'FieldValueInvalid',
                  message: 'Invalid value: "nope": name is neither a standard finalizer name nor is it fully qualified',
                  field: 'metadata.finalizers[0]',
                },
              ],
            },
            code: 422,
          },
        },
        {
          what: 'a claim without access modes and size',
          method: 'POST',
          path: claims,
          send: { body: { metadata: { name: 'bare' }, spec: {} } },
          body: {
            ...failure,
            message:
              'PersistentVolumeClaim "bare" is invalid: [spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: Required value]',
            reason: 'Invalid',
            details: {
              name: 'bare',
              kind: 'PersistentVolumeClaim',
              causes: [
                {
                  reason: 'FieldValueRequired',
                  message: 'Required value: at least 1 access mode is required',
                  field: 'spec.accessModes',
                },
                { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.resources[storage]' },
              ],
            },
            code: 422,
          },
        },
        {
          what: 'a delete with an unknown policy',
          method: 'DELETE',
          path: () => `${leases()}/none`,
          send: { body: { propagationPolicy: 'Sideways' } },
          body: {
            ...failure,
            message:
              'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
            reason: 'Invalid',
            details: {
              group: 'meta.k8s.io',
              kind: 'DeleteOptions',
              causes: [
                {
                  reason: 'FieldValueNotSupported',
                  message:
                    'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
                  field: 'propagationPolicy',
                },
              ],
            },
            code: 422,
          },
        },
      ];
      for (const { what, method, path, send, body } of refusals) {
        it(`says the whole Status of ${what}`, async () => {
          const reply = await client.send(method, path(), send);
          expect(reply.code).toBe(body['code']);
          expect(reply.body).toEqual(body);
        });
      }

      it('refuses a change of what identifies a volume, an attachment, a class and a pod by 422', async () => {
        await make('/api/v1/persistentvolumes', {
          metadata: { name: `${namespace}-v` },
          spec: {
            capacity: { storage: '1Gi' },
            accessModes: ['ReadWriteOnce'],
            csi: { driver: 'd.example.com', volumeHandle: 'h' },
          },
        });
        await make('/apis/storage.k8s.io/v1/volumeattachments', {
          metadata: { name: `${namespace}-a` },
          spec: { attacher: 'd.example.com', nodeName: 'n', source: { persistentVolumeName: 'v' } },
        });
        await make('/apis/storage.k8s.io/v1/storageclasses', {
          metadata: { name: `${namespace}-s` },
          provisioner: 'd.example.com',
        });
        await make(pods(), pod('fixed', { nodeName: 'nowhere' }));
        const changes: readonly [string, unknown, string][] = [
          [
            `/api/v1/persistentvolumes/${namespace}-v`,
            { spec: { csi: { volumeHandle: 'other' } } },
            'spec.persistentvolumesource',
          ],
          [`/apis/storage.k8s.io/v1/volumeattachments/${namespace}-a`, { spec: { nodeName: 'other' } }, 'spec'],
          [
            `/apis/storage.k8s.io/v1/storageclasses/${namespace}-s`,
            { provisioner: 'other.example.com' },
            'provisioner',
          ],
          [`${pods()}/fixed`, { spec: { nodeName: 'other' } }, 'spec'],
        ];
        for (const [path, change, field] of changes) {
          const reply = await client.mergePatch(path, change);
          expect([path, reply.code, dig(reply.body, 'details', 'causes', 0, 'field')]).toEqual([path, 422, field]);
          expect((await client.send('DELETE', path, { body: { gracePeriodSeconds: 0 } })).code).toBe(200);
        }
        await client.mergePatch(`/api/v1/persistentvolumes/${namespace}-v`, { metadata: { finalizers: null } });
      });
    });

    describe('rights', () => {
      interface Forbidden {
        readonly what: string;
        readonly method: string;
        readonly path: () => string;
        readonly send?: Send;
        readonly cannot: () => string;
        readonly details: Readonly<Record<string, string>>;
      }
      const cluster = 'at the cluster scope';
      const there = (): string => `in the namespace "${namespace}"`;
      const forbidden: readonly Forbidden[] = [
        {
          what: 'a list of the cluster',
          method: 'GET',
          path: () => '/api/v1/nodes',
          cannot: () => `list resource "nodes" in API group "" ${cluster}`,
          details: { kind: 'nodes' },
        },
        {
          what: 'an object, whether it is there or not',
          method: 'GET',
          path: () => '/api/v1/nodes/none',
          cannot: () => `get resource "nodes" in API group "" ${cluster}`,
          details: { name: 'none', kind: 'nodes' },
        },
        {
          what: 'a watch of what may be listed',
          method: 'GET',
          path: () => `${claims()}?watch=true`,
          cannot: () => `watch resource "persistentvolumeclaims" in API group "" ${there()}`,
          details: { kind: 'persistentvolumeclaims' },
        },
        {
          what: 'a collection of what may be deleted one by one',
          method: 'DELETE',
          path: pods,
          cannot: () => `deletecollection resource "pods" in API group "" ${there()}`,
          details: { kind: 'pods' },
        },
        {
          what: 'a dry run',
          method: 'PATCH',
          path: () => `${pods()}/none?dryRun=All`,
          send: { body: {}, type: 'application/merge-patch+json' },
          cannot: () => `patch resource "pods" in API group "" ${there()}`,
          details: { name: 'none', kind: 'pods' },
        },
        {
          what: 'a subresource that was not named',
          method: 'GET',
          path: () => `${pods()}/none/status`,
          cannot: () => `get resource "pods/status" in API group "" ${there()}`,
          details: { name: 'none', kind: 'pods' },
        },
        {
          what: 'the resource of a subresource that was named',
          method: 'PATCH',
          path: () => `${inNamespace('deployments', 'apps')}/none`,
          send: { body: {}, type: 'application/merge-patch+json' },
          cannot: () => `patch resource "deployments" in API group "apps" ${there()}`,
          details: { name: 'none', group: 'apps', kind: 'deployments' },
        },
        {
          what: 'a body that nobody has read yet',
          method: 'POST',
          path: pods,
          send: { raw: '{' },
          cannot: () => `create resource "pods" in API group "" ${there()}`,
          details: { kind: 'pods' },
        },
        {
          what: 'a kind that nobody serves',
          method: 'GET',
          path: () => '/apis/nothing.example.com/v1/nothings',
          cannot: () => `list resource "nothings" in API group "nothing.example.com" ${cluster}`,
          details: { group: 'nothing.example.com', kind: 'nothings' },
        },
      ];
      for (const { what, method, path, send, cannot, details } of forbidden) {
        it(`forbids ${what} and says who cannot do what where`, async () => {
          const reply = await limited.send(method, path(), send);
          const of = [details['kind'], details['group']].filter((part) => part !== undefined).join('.');
          const named = details['name'] === undefined ? of : `${of} "${details['name']}"`;
          expect(reply.body).toEqual({
            kind: 'Status',
            apiVersion: 'v1',
            metadata: {},
            status: 'Failure',
            message: `${named} is forbidden: User "${LIMITED}" cannot ${cannot()}`,
            reason: 'Forbidden',
            details,
            code: 403,
          });
        });
      }

      it('lets happen what a rule allows, of every namespace and of one name', async () => {
        await make(pods(), pod('allowed'));
        expect((await limited.send('GET', `${pods()}/allowed`)).code).toBe(200);
        expect((await limited.send('GET', claims())).code).toBe(200);
        expect((await limited.send('GET', '/api/v1/persistentvolumeclaims')).code).toBe(200);
        expect((await limited.send('GET', '/api/v1/nodes/mine')).code).toBe(404);
        expect((await limited.mergePatch(`${inNamespace('deployments', 'apps')}/none/scale`, {})).code).toBe(404);
        expect((await limited.send('DELETE', `${pods()}/allowed`)).code).toBe(200);
      });

      it('knows nobody without a token, and refuses a wrong one', async () => {
        const nobody = await client.send('GET', '/api/v1/nodes', { token: '' });
        expect(nobody.code).toBe(403);
        expect(text(nobody.body, 'message')).toBe(
          'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope',
        );
        const outside = await client.send('GET', '/api', { token: '' });
        expect(outside.code).toBe(403);
        expect(text(outside.body, 'message')).toBe('forbidden: User "system:anonymous" cannot get path "/api"');
        expect((await client.send('GET', '/version', { token: '' })).code).toBe(200);
        expect((await client.send('GET', '/api', { token: 'wrong' })).code).toBe(401);
      });

      const asked: readonly [Readonly<Record<string, string>>, boolean][] = [
        [{ verb: 'get', resource: 'pods' }, true],
        [{ verb: 'delete', resource: 'pods', namespace: 'anywhere' }, true],
        [{ verb: 'deletecollection', resource: 'pods' }, false],
        [{ verb: '*', resource: 'pods' }, false],
        [{ verb: 'get', resource: '*' }, false],
        [{ verb: 'get', resource: 'pods', subresource: 'status' }, false],
        [{ verb: 'get', resource: 'pods', group: 'apps' }, false],
        [{ verb: 'get', resource: 'nodes', name: 'mine' }, true],
        [{ verb: 'get', resource: 'nodes', name: 'other' }, false],
        [{ verb: 'get', resource: 'nodes' }, false],
        [{ verb: 'patch', resource: 'deployments', subresource: 'scale', group: 'apps' }, true],
        [{ verb: 'patch', resource: 'deployments', group: 'apps' }, false],
      ];
      for (const [resourceAttributes, allowed] of asked) {
        it(`reviews ${Object.values(resourceAttributes).join(' ')}: ${allowed ? 'yes' : 'no'}`, async () => {
          const body = { spec: { resourceAttributes } };
          const reply = await limited.send('POST', `${REVIEWS}/selfsubjectaccessreviews`, { body });
          expect(reply.code).toBe(201);
          expect(dig(reply.body, 'status', 'allowed')).toBe(allowed);
          expect(dig(reply.body, 'spec', 'resourceAttributes')).toEqual(resourceAttributes);
          const admin = await client.send('POST', `${REVIEWS}/selfsubjectaccessreviews`, { body });
          expect(dig(admin.body, 'status', 'allowed')).toBe(true);
        });
      }

      it('refuses a review of nothing by 422', async () => {
        const reply = await limited.send('POST', `${REVIEWS}/selfsubjectaccessreviews`, { body: { spec: {} } });
        expect(reply.code).toBe(422);
        // 1.36 calls it spec.resourceAttributes.
        expect(dig(reply.body, 'details', 'causes', 0, 'field')).toMatch(/^spec\b/);
      });

      it('lists the rules of a namespace, and asks for one', async () => {
        const path = `${REVIEWS}/selfsubjectrulesreviews`;
        const reply = await limited.send('POST', path, { body: { spec: { namespace } } });
        expect(reply.code).toBe(201);
        expect(dig(reply.body, 'status', 'resourceRules')).toEqual(
          expect.arrayContaining([
            { verbs: ['get', 'delete'], apiGroups: [''], resources: ['pods'] },
            { verbs: ['get'], apiGroups: [''], resources: ['nodes'], resourceNames: ['mine'] },
          ]),
        );
        expect((await limited.send('POST', path, { body: { spec: {} } })).body).toMatchObject({
          code: 400,
          message: 'no namespace on request',
        });
      });
    });
  });
}

function looseOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
