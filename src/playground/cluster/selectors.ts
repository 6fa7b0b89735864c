import { badRequest } from './api-error.ts';
import type { KubeObject, LabelSelector, NodeSelector, ResourceInfo } from './kinds.ts';
import { apiVersionOf } from './kinds.ts';

/** Answers whether an object is selected. */
export type Predicate = (object: KubeObject) => boolean;

type Labels = Readonly<Record<string, string>>;

function expressionMatches(labels: Labels, key: string, operator: string, values: readonly string[]): boolean {
  const value = labels[key];
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0]);
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return false;
  }
}

/** Whether labels satisfy a selector of an object; an empty selector matches everything. */
export function labelsMatch(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined) return false;
  const own = labels ?? {};
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (own[key] !== value) return false;
  return (selector.matchExpressions ?? []).every((term) =>
    expressionMatches(own, term.key, term.operator, term.values ?? []),
  );
}

/** Whether labels satisfy a node selector: terms are alternatives, the expressions of one term all hold. */
export function nodeSelectorMatches(selector: NodeSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined) return true;
  return selector.nodeSelectorTerms.some((term) => {
    const expressions = term.matchExpressions ?? [];
    return (
      expressions.length > 0 &&
      expressions.every((e) => expressionMatches(labels ?? {}, e.key, e.operator, e.values ?? []))
    );
  });
}

/** The text form of a selector, as the Scale subresource reports it. */
export function selectorText(selector: LabelSelector): string {
  return Object.entries(selector.matchLabels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

const LABEL_KEY = /^([a-z0-9A-Z]([-a-z0-9A-Z.]*[a-z0-9A-Z])?\/)?[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$/;

/** Parses a `labelSelector` query: `a=b,c!=d,e in (f,g),h,!i`. Malformed text is a 400. */
export function parseLabelSelector(text: string): Predicate {
  const tests: ((labels: Labels) => boolean)[] = [];
  for (const part of text.split(/,(?![^(]*\))/)) {
    const term = part.trim();
    if (term === '') continue;
    const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
    const equal = /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(term);
    const bare = /^(!?)\s*([^=!\s()]+)$/.exec(term);
    const key = set?.[1] ?? equal?.[1] ?? bare?.[2] ?? '';
    if (!LABEL_KEY.test(key))
      throw badRequest(`unable to parse requirement: invalid label key ${JSON.stringify(key === '' ? term : key)}`);
    if (set !== null) {
      const values = (set[3] ?? '').split(',').map((value) => value.trim());
      tests.push((labels) => expressionMatches(labels, key, set[2] === 'in' ? 'In' : 'NotIn', values));
    } else if (equal !== null) {
      tests.push((labels) => expressionMatches(labels, key, equal[2] === '!=' ? 'NotIn' : 'In', [equal[3] ?? '']));
    } else {
      tests.push((labels) => (labels[key] !== undefined) === (bare?.[1] !== '!'));
    }
  }
  return (object) => tests.every((test) => test(object.metadata.labels ?? {}));
}

function at(value: unknown, path: readonly string[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== 'object' || here === null) return undefined;
    here = Object.entries(here).find(([name]) => name === key)?.[1];
  }
  return here;
}

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return '';
}

function fieldValue(object: KubeObject, field: string): string {
  if (field === 'name') return object.metadata.name;
  if (field === 'source') {
    const component = text(at(object, ['source', 'component']));
    return component === '' ? text(at(object, ['reportingComponent'])) : component;
  }
  if (field === 'spec.unschedulable' || field === 'spec.hostNetwork')
    return at(object, field.split('.')) === true ? 'true' : 'false';
  return text(at(object, field.split('.')));
}

/**
 * Parses a `fieldSelector` query. Only the fields that a real API server indexes can be selected; any other is a 400,
 * so that a reader who relies on more fails here as there.
 */
export function parseFieldSelector(entry: ResourceInfo, query: string): Predicate {
  const allowed = new Set(['metadata.name', ...(entry.namespaced ? ['metadata.namespace'] : []), ...entry.fields]);
  const tests: Predicate[] = [];
  for (const part of query.split(',')) {
    if (part === '') continue;
    const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(part);
    if (match === null) throw badRequest(`invalid selector: '${part}'; can't understand '${part}'`);
    const [, field = '', operator = '=', value = ''] = match;
    if (!allowed.has(field)) {
      throw badRequest(
        entry.group === '' && entry.fields.length > 0
          ? `field label not supported: ${field}`
          : `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
      );
    }
    tests.push((object) => (fieldValue(object, field) === value) === (operator !== '!='));
  }
  return (object) => tests.every((test) => test(object));
}

/** Whether an object's type line is the resource's. */
export function isOfKind(entry: ResourceInfo, apiVersion: unknown, kind: unknown): boolean {
  return (
    (apiVersion === undefined || apiVersion === apiVersionOf(entry)) && (kind === undefined || kind === entry.kind)
  );
}
