import { Counter, Gauge, Registry } from 'prom-client';

/** Prometheus metrics of this process; every name begins with `k8s_storage_`. */
export function createMetrics(version: string) {
  const registers = [new Registry()];
  const [registry] = registers;
  new Gauge({
    name: 'k8s_storage_build_info',
    help: 'Always 1; the version is a label.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1);
  const jobs = new Counter({
    name: 'k8s_storage_jobs_total',
    help: 'Jobs that ended in this process, by kind and outcome.',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const sweeps = new Gauge({
    name: 'k8s_storage_last_sweep_timestamp_seconds',
    help: 'When the sweep last ran in this process.',
    registers,
  });
  return {
    jobEnded: (kind: string, outcome: 'done' | 'failed') => jobs.inc({ kind, outcome }),
    swept: (atMs: number) => sweeps.set(atMs / 1000),
    text: async () => (registry ? registry.metrics() : ''),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
