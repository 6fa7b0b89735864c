import { existsSync, globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { entriesOf } from '../../scripts/gen.ts';
import { faults } from '../../src/faults/index.ts';
import { remediations } from '../../src/remediations/index.ts';

describe('every fault', () => {
  it.each(faults.map((fault) => fault.id))(
    '%s has a file of its name and a fixture that has it, one that is clear and one that is unknown',
    (id) => {
      const kinds = globSync(`test/faults/${id}/*.yaml`).map((path) => path.split('/').at(-1)?.split('.')[0]);
      expect(existsSync(`src/faults/${id}.ts`)).toBe(true);
      const has = kinds.includes('found') ? 'found' : 'progress';
      expect(new Set(kinds)).toEqual(new Set([...kinds, has, 'clear', 'unknown']));
    },
  );

  it.each(faults.map((fault) => [fault.id, fault.doc] as const))(
    '%s is documented under all four headings',
    (_, doc) => {
      for (const text of [doc.meaning, doc.impact, doc.diagnosis, doc.mitigation])
        expect(text.length).toBeGreaterThan(40);
    },
  );

  it('needs only kinds that tell it apart, and names none twice', () => {
    for (const fault of faults) {
      const all = [...fault.needs, ...fault.uses];
      expect(all.length, fault.id).toBe(new Set(all).size);
      expect(fault.needs.includes('events'), `${fault.id} must not depend on events`).toBe(false);
    }
  });
});

describe('every remediation', () => {
  it.each(remediations.map((remediation) => remediation.id))(
    '%s has a file of its name and a fixture for before, after and refused',
    (id) => {
      const kinds = globSync(`test/remediations/${id}/*.yaml`).map((path) => path.split('/').at(-1)?.split('.')[0]);
      expect(existsSync(`src/remediations/${id}.ts`)).toBe(true);
      expect(new Set(kinds)).toEqual(new Set([...kinds, 'before', 'after', 'refused']));
    },
  );

  it('is reached by a fault, and every offer names one', () => {
    const sources = entriesOf('src/faults')
      .map((id) => readFileSync(`src/faults/${id}.ts`, 'utf8'))
      .join('\n');
    for (const remediation of remediations)
      expect(sources, remediation.id).toContain(`remediations/${remediation.id}.ts`);
  });

  it('touches only what the acting role may be granted', () => {
    const touched = remediations.flatMap((remediation) =>
      remediation.touches.map((touch) => `${touch.verb} ${touch.resource}`),
    );
    const forbidden = touched.filter((touch) =>
      /delete (namespaces|nodes|persistentvolumes|statefulsets|storageclasses)|create (pods|volumeattachments)/.test(
        touch,
      ),
    );
    expect(forbidden).toEqual([]);
  });
});
