import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const service = z.looseObject({
  read_only: z.boolean(),
  user: z.string(),
  cap_drop: z.array(z.string()),
  security_opt: z.array(z.string()),
  healthcheck: z.looseObject({ test: z.array(z.string()) }),
  environment: z.record(z.string(), z.string()).optional(),
  secrets: z.array(z.string()).optional(),
});
const text = readFileSync('docker-compose.yml', 'utf8');
const compose = z.looseObject({ services: z.record(z.string(), service) }).parse(parse(text, { merge: true }));

describe('docker-compose.yml', () => {
  it('is valid against the Compose schema', () => {
    const schema: unknown = JSON.parse(readFileSync('test/data/compose/compose-spec.json', 'utf8'));
    const ajv = new Ajv({ strict: false, allErrors: true });
    addFormats.default(ajv);
    // The schema names its draft by another address than the one that the validator knows it by.
    const { $schema: _, ...rules } = z.looseObject({}).parse(schema);
    const isValid = ajv.compile(rules);
    isValid(parse(text, { merge: true }));
    expect(isValid.errors ?? []).toEqual([]);
  });

  it('runs web, worker, remediator, PostgreSQL and Redis, each as nobody in particular on a file system that it cannot write', () => {
    expect(Object.keys(compose.services).toSorted()).toEqual(['postgres', 'redis', 'remediator', 'web', 'worker']);
    for (const [name, part] of Object.entries(compose.services)) {
      expect(part.user, name).toMatch(/^[1-9]\d*:[1-9]\d*$/);
      expect(part.read_only, name).toBe(true);
      expect(part.cap_drop, name).toEqual(['ALL']);
      expect(part.security_opt, name).toContain('no-new-privileges:true');
      expect(part.healthcheck.test.length, name).toBeGreaterThan(1);
    }
  });

  it('gives acting credentials to the remediator alone, and no cluster credentials to the web role', () => {
    const secrets = Object.entries(compose.services).map(([name, part]) => [name, part.secrets ?? []] as const);
    expect(secrets.filter(([, held]) => held.includes('kubeconfig_act')).map(([name]) => name)).toEqual(['remediator']);
    expect(secrets.find(([name]) => name === 'web')?.[1]).toEqual([]);
  });

  it('sets only settings that the bot knows, and a role each', () => {
    const roles = ['web', 'worker', 'remediator'].map((name) => compose.services[name]?.environment?.['ROLE']);
    expect(roles).toEqual(['web', 'worker', 'remediator']);
  });
});
