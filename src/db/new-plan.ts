import { Refused } from '../domain/errors.ts';
import { canonicalText, digestOf } from '../domain/report.ts';
import { en, zh } from '../domain/text.ts';
import type { PlannedWrite } from '../domain/write.ts';
import type { NewPlan } from '../ports.ts';
import type { Tx } from './database.ts';
import { fromNow } from './moves.ts';
import { writeSentence } from './text.ts';

/** Stores a plan that waits for approval. Its digest is worked out again: what people approve is what is stored. */
export async function createPlan(
  tx: Tx,
  input: {
    readonly incident: string;
    readonly cluster: string;
    readonly plan: NewPlan;
    readonly approvalTtlMs: number;
    readonly continues: string | null;
  },
): Promise<void> {
  const { incident, cluster, plan, continues } = input;
  const { offer } = plan;
  const digest = digestOf({
    cluster: plan.clusterUid,
    remediation: offer.remediation,
    params: offer.params,
    plan: offer.plan,
  });
  if (digest !== offer.digest) throw new Error(`the digest of plan ${plan.id} is not the one of its writes`);
  if (offer.plan.length === 0)
    throw new Refused({ en: en`Plan ${plan.id} writes nothing.`, zh: zh`计划 ${plan.id} 没有任何写入。` });
  await tx.db
    .insertInto('plan')
    .values({
      id: plan.id,
      incident,
      finding: plan.finding,
      fault: plan.fault,
      cluster,
      cluster_uid: plan.clusterUid,
      remediation: offer.remediation,
      params: canonicalText(offer.params),
      title: writeSentence(plan.title),
      writes: canonicalText(offer.plan),
      digest,
      risk: offer.risk,
      data_loss: offer.dataLoss,
      requires: canonicalText(offer.requires),
      undo: writeSentence(offer.undo),
      requester: plan.requester,
      continues,
    })
    .execute();
  const targets = new Map(offer.plan.map((write) => [targetOf(write), { ...write, resource: baseOf(write.resource) }]));
  await tx.db
    .insertInto('plan_target')
    .values(
      [...targets].map(([target, { resource, namespace, name }]) => ({
        plan: plan.id,
        cluster_uid: plan.clusterUid,
        target,
        resource,
        namespace,
        name,
      })),
    )
    .execute();
  await tx.db
    .insertInto('plan_state')
    .values({ plan: plan.id, incident, cluster, state: 'AWAITING_APPROVAL', approve_by: fromNow(input.approvalTtlMs) })
    .execute();
  await tx.db
    .insertInto('step')
    .values(
      offer.plan.map((write, index) => ({
        plan: plan.id,
        no: index + 1,
        write: canonicalText(write),
        state: 'PENDING' as const,
      })),
    )
    .execute();
  tx.book.tell({
    kind: 'plan_created',
    actor: plan.requester ?? 'system',
    incident,
    plan: plan.id,
    digest,
    cluster: plan.clusterUid,
    data: {
      remediation: offer.remediation,
      fault: plan.fault,
      risk: offer.risk,
      dataLoss: offer.dataLoss,
      requires: offer.requires,
      params: offer.params,
      writes: offer.plan,
      ...(continues === null ? {} : { continues }),
    },
  });
}

/** What a write needs for itself alone: the object by uid, or by name where it is yet to be made. */
function targetOf(write: PlannedWrite): string {
  return write.uid === null
    ? `new:${baseOf(write.resource)}/${write.namespace ?? ''}/${write.name}`
    : `uid:${write.uid}`;
}

/** `deployments/scale` is a way to write `deployments`. */
function baseOf(resource: string): string {
  return resource.split('/')[0] ?? resource;
}
