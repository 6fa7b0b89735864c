import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { PlannedWrite } from '../../../src/domain/write.ts';
import { ACTOR, READER } from './credentials.ts';
import { isRecord, textAt } from './objects.ts';

const line = z.object({
  auditID: z.string(),
  stage: z.string(),
  verb: z.string(),
  requestURI: z.string(),
  user: z.object({ username: z.string() }),
  objectRef: z
    .object({
      resource: z.string(),
      subresource: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
    })
    .optional(),
  requestObject: z.unknown().optional(),
  responseObject: z.unknown().optional(),
  responseStatus: z.object({ code: z.number().optional() }).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});
export type AuditLine = z.infer<typeof line>;

/** What the API server itself has written down: the witness that neither the bot nor the test can bend. */
export class AuditLog {
  readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  async lines(): Promise<readonly AuditLine[]> {
    const text = await readFile(this.file, 'utf8');
    // The last line may be half written.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    return whole.split('\n').flatMap((one) => (one === '' ? [] : [line.parse(JSON.parse(one))]));
  }

  /** Requests of the bot's two accounts, in order. */
  async ofTheBot(): Promise<readonly AuditLine[]> {
    const all = await this.lines();
    return all.filter(({ stage, user }) => stage === 'ResponseComplete' && [READER, ACTOR].includes(user.username));
  }
}

const writing = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/** A request that may have changed something. A dry run changes nothing; it shows in the address or in a delete's body. */
export function isEffect(request: AuditLine): boolean {
  return writing.has(request.verb) && !isDryRun(request);
}

export function isDryRun({ requestURI, requestObject }: AuditLine): boolean {
  if (new URL(requestURI, 'http://server').searchParams.get('dryRun') === 'All') return true;
  return isRecord(requestObject) && Array.isArray(requestObject['dryRun']) && requestObject['kind'] === 'DeleteOptions';
}

/**
 * Of the requests of a stormy network those that changed something: not the refused ones, and not the second of two
 * after which the object is at the same version as after the first.
 */
export function changesAmong(effects: readonly AuditLine[]): readonly AuditLine[] {
  const versions = new Set<string>();
  return effects.filter(({ responseStatus, responseObject }) => {
    if ((responseStatus?.code ?? 0) >= 300) return false;
    const uid = textAt(responseObject, 'metadata.uid');
    const version = `${uid} ${textAt(responseObject, 'metadata.resourceVersion')}`;
    if (uid !== '' && versions.has(version)) return false;
    versions.add(version);
    return true;
  });
}

/** One line for people: who did what to what, with which condition. */
export function describeRequest({ user, verb, objectRef, requestObject, responseStatus }: AuditLine): string {
  const resource = [objectRef?.resource, objectRef?.subresource].filter(Boolean).join('/');
  const name = [objectRef?.namespace, objectRef?.name ?? nameIn(requestObject)].filter(Boolean).join('/');
  const who = user.username === ACTOR ? 'act' : user.username === READER ? 'read' : user.username;
  return `${who} ${verb} ${resource} ${name} uid=${uidIn(verb, requestObject) ?? 'none'} → ${responseStatus?.code ?? '?'}`;
}

/** The same line for a write of a plan, as it must stand in the log. */
export function describePlanned(write: PlannedWrite): string {
  const name = [write.namespace, write.name].filter(Boolean).join('/');
  return `act ${write.verb} ${write.resource} ${name} uid=${write.uid ?? 'none'} → ${write.verb === 'create' ? 201 : 200}`;
}

/** The uid without which the server would have refused it: a precondition of the delete, or the first test of a patch. */
function uidIn(verb: string, body: unknown): string | undefined {
  if (verb === 'delete') {
    const guard = isRecord(body) ? body['preconditions'] : undefined;
    return isRecord(guard) && typeof guard['uid'] === 'string' ? guard['uid'] : undefined;
  }
  if (verb !== 'patch' || !Array.isArray(body)) return undefined;
  const first: unknown = body[0];
  if (!isRecord(first) || first['op'] !== 'test' || first['path'] !== '/metadata/uid') return undefined;
  return typeof first['value'] === 'string' ? first['value'] : undefined;
}

function nameIn(body: unknown): string | undefined {
  const metadata = isRecord(body) ? body['metadata'] : undefined;
  return isRecord(metadata) && typeof metadata['name'] === 'string' ? metadata['name'] : undefined;
}

/** Whether the body that was sent has everything that the plan says; the server notes some fields of its own beside it. */
export function isBodyOf(write: PlannedWrite, sent: unknown): boolean {
  return includes(sent, write.body);
}

function includes(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted))
    return (
      Array.isArray(actual) && actual.length === wanted.length && wanted.every((item, i) => includes(actual[i], item))
    );
  if (isRecord(wanted))
    return isRecord(actual) && Object.entries(wanted).every(([key, value]) => includes(actual[key], value));
  return actual === wanted;
}
