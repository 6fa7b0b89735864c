import { apiVersionOf, resourceNames, resources } from '../../domain/resources.ts';
import type { PlannedWrite } from '../../domain/write.ts';
import type { Locale } from '../../locales/en.ts';

/**
 * The shell line that does what one write of a plan does, conditions included: a delete carries its preconditions as the
 * body of `kubectl delete --raw`, a patch its uid test. Everything from outside stands in single quotes.
 */
export function kubectlLine(write: PlannedWrite, context: string, t: Locale): string {
  const [name = '', subresource] = write.resource.split('/');
  const resource = resourceNames.find((one) => one === name);
  const body = JSON.stringify(write.body);
  // No kubectl reaches the storage backend: it is said in the shell's own words what to do there.
  if (resource === 'backendvolumes') return `# ${t.answers.inBackend(`${write.verb} ${quote(write.name)} ${body}`)}`;
  const where = write.namespace === null ? '' : ` -n ${quote(write.namespace)}`;
  const to = ` --context ${quote(context)}`;
  switch (write.verb) {
    case 'delete': {
      const options = `{"kind":"DeleteOptions","apiVersion":"v1",${body.slice(1)}`;
      return `echo ${quote(options)} | kubectl delete${to} --raw ${quote(pathOf(write, resource))} -f -`;
    }
    case 'patch': {
      const group = resource && resources[resource].group !== '' ? `.${resources[resource].group}` : '';
      const sub = subresource === undefined ? '' : ` --subresource=${subresource}`;
      return `kubectl patch ${name}${group} ${quote(write.name)}${where}${to}${sub} --type=json -p ${quote(body)}`;
    }
    default:
      return `echo ${quote(body)} | kubectl create${to}${where} -f -`;
  }
}

function pathOf(write: PlannedWrite, resource: keyof typeof resources | undefined): string {
  const version = resource ? apiVersionOf(resource) : 'v1';
  const root = version.includes('/') ? `/apis/${version}` : `/api/${version}`;
  const space = write.namespace === null ? '' : `/namespaces/${encodeURIComponent(write.namespace)}`;
  return `${root}${space}/${write.resource}/${encodeURIComponent(write.name)}`;
}

/** A word of a POSIX shell; plain names stay as they are. */
function quote(word: string): string {
  return /^[A-Za-z0-9._:@%/+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
