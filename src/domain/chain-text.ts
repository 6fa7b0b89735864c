import type { Chain, ChainNode } from './chain.ts';
import { describeRef } from './ref.ts';
import { en, enumerated, type Language, type Text, textIn, verbatim, zh } from './text.ts';

/** One sentence for who cannot see the picture, `most` characters at most. The picture itself has few words, in English. */
export function describeChain(chain: Chain, language: Language, most = 1900): string {
  const byId = new Map(chain.nodes.map((node) => [node.id, node]));
  const culprit = byId.get(chain.culprit);
  const stuck = chain.nodes.filter((node) => node.role === 'stuck').map(describeNode);
  const links = chain.edges.flatMap(({ from, to, says }) => {
    const [upper, lower] = [byId.get(from), byId.get(to)];
    return upper && lower && says !== '' ? [describeLink(nameOf(upper), says, nameOf(lower))] : [];
  });
  const cause = culprit ? describeNode(culprit) : { en: 'not in it', zh: '不在图中的对象' };
  const all = enumerated(stuck, stuck.length);
  const parts: readonly Text[] = [
    { en: en`Picture of the chain. The cause is ${cause}`, zh: zh`关系图。原因是 ${cause}` },
    ...(stuck.length > 0 ? [{ en: en`stuck: ${all}`, zh: zh`受影响：${all}` }] : []),
    ...links,
  ];
  const said = parts.map((part) => textIn(part, language));
  const text = language === 'en' ? `${said.join('; ')}.` : `${said.join('；')}。`;
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function describeNode(node: ChainNode): Text {
  const name = nameOf(node);
  if (node.state === null) return name;
  const state = stateInWords(node.state);
  return { en: en`${name} (${state})`, zh: zh`${name}（${state}）` };
}

function nameOf({ kind, namespace, name, more }: ChainNode): Text {
  if (more === 0) return verbatim(describeRef({ kind, namespace, name }));
  return kind === ''
    ? { en: en`${more} more`, zh: zh`另外 ${more} 个对象` }
    : { en: en`${more} more of kind ${kind}`, zh: zh`另外 ${more} 个 ${kind}` };
}

/** What stands in Chinese between the upper and the lower object, and after the lower one. */
const links: Readonly<Record<string, readonly [between: string, after?: string]>> = {
  'asks for': ['请求'],
  'attached by': ['由', '挂接'],
  'bound to': ['绑定到'],
  calls: ['调用'],
  contains: ['包含'],
  'driven by': ['由', '驱动'],
  'drivers in': ['的驱动列在', '中'],
  'holds up': ['妨碍'],
  limits: ['限制'],
  'made from': ['的来源是'],
  mounts: ['挂载'],
  'of class': ['的类是'],
  on: ['位于'],
  owns: ['是', '的属主'],
  'provisioned by': ['由', '制备'],
  renews: ['为', '续约'],
  'reserved for': ['预留给'],
  'served by': ['由', '提供服务'],
  'snapshot of': ['是', '的快照'],
  'stored as': ['存储为'],
  'to attach by': ['等待由', '挂接'],
  uses: ['使用'],
};

function describeLink(upper: Text, says: string, lower: Text): Text {
  const [between, after = ''] = links[says] ?? [says];
  return { en: en`${upper} ${says} ${lower}`, zh: zh`${upper} ${between} ${lower} ${after}`.trimEnd() };
}

const states: Readonly<Record<string, string>> = {
  'not found': '未找到',
  ready: '就绪',
  'not ready': '未就绪',
  attached: '已挂接',
  'not attached': '未挂接',
  'attach fails': '挂接失败',
  detaching: '正在解除挂接',
  'detach fails': '解除挂接失败',
};

/** Kubernetes' own words stay. */
function stateInWords(state: string): Text {
  const [, ready, all] = /^(\d+) of (\d+) ready$/.exec(state) ?? [];
  if (ready !== undefined && all !== undefined) return { en: state, zh: zh`${all} 个副本中有 ${ready} 个就绪` };
  return { en: state, zh: states[state] ?? state.replace(', cordoned', '，已标记为不可调度') };
}
