/** One account of the playground's workspace. `tzOffset` is in seconds. */
export type Person = {
  readonly id: string;
  readonly name: string;
  readonly realName: string;
  readonly title: string;
  readonly locale: string;
  readonly tz: string;
  readonly tzLabel: string;
  readonly tzOffset: number;
  readonly color: string;
  readonly isBot: boolean;
  readonly isRestricted: boolean;
  readonly isAdmin: boolean;
};

/** A channel; `members` are user ids. A direct message has the id of its one person in `with`. */
export type Channel = {
  readonly id: string;
  readonly name: string;
  readonly topic: string;
  readonly members: readonly string[];
  readonly with?: string;
};

/** The workspace belongs to an organisation, so that every enterprise key of Slack's payloads has a true value. */
export const enterprise = { id: 'E0PLAYGRND', name: 'Playground' } as const;

export const team = { id: 'T0PLAYGRND', domain: 'playground', name: 'Playground' } as const;

/** The app as it is installed in the workspace. */
export const app = {
  id: 'A0K8STORAGE',
  botId: 'B0K8STORAGE',
  userId: 'U0K8STORAGE',
  name: 'k8s-storage',
  command: '/k8s-storage',
} as const;

/** Message shortcuts and hints for the command, as the app's manifest declares them. */
export const messageShortcuts = [{ name: 'Diagnose storage here', callbackId: 'storage_diagnose_message' }] as const;

/** The id of Slack's own voice, which tells a person that an app did not answer. */
export const slackbot = 'USLACKBOT';

const human = { isBot: false, isRestricted: false, isAdmin: false } as const;

/** Dana runs the application, Sam and Lin are the platform's on-call, Gus is a guest. */
export const people: readonly Person[] = [
  {
    ...human,
    id: 'U0DANA00001',
    name: 'dana',
    realName: 'Dana',
    title: 'Application developer',
    locale: 'en-US',
    tz: 'Europe/Berlin',
    tzLabel: 'Central European Time',
    tzOffset: 3600,
    color: '#7a4b9e',
  },
  {
    ...human,
    isAdmin: true,
    id: 'U0SAM000001',
    name: 'sam',
    realName: 'Sam',
    title: 'Platform on-call',
    locale: 'en-GB',
    tz: 'Europe/London',
    tzLabel: 'Greenwich Mean Time',
    tzOffset: 0,
    color: '#1d7d74',
  },
  {
    ...human,
    id: 'U0LIN000001',
    name: 'lin',
    realName: 'Lin',
    title: 'Platform on-call',
    locale: 'en-US',
    tz: 'Asia/Singapore',
    tzLabel: 'Singapore Standard Time',
    tzOffset: 28_800,
    color: '#b5542b',
  },
  {
    ...human,
    id: 'U0MEI000001',
    name: 'mei',
    realName: 'Mei',
    title: 'Storage on-call',
    locale: 'zh-CN',
    tz: 'Asia/Shanghai',
    tzLabel: 'China Standard Time',
    tzOffset: 28_800,
    color: '#8a3ffc',
  },
  {
    ...human,
    isRestricted: true,
    id: 'U0GUS000001',
    name: 'gus',
    realName: 'Gus',
    title: 'Guest',
    locale: 'en-US',
    tz: 'America/New_York',
    tzLabel: 'Eastern Standard Time',
    tzOffset: -18_000,
    color: '#5b6b7f',
  },
  {
    id: app.userId,
    name: app.name,
    realName: app.name,
    title: 'Diagnoses Kubernetes storage',
    locale: 'en-US',
    tz: 'Etc/UTC',
    tzLabel: 'Coordinated Universal Time',
    tzOffset: 0,
    color: '#1f3a5f',
    isBot: true,
    isRestricted: false,
    isAdmin: false,
  },
];

const everybody = people.map((person) => person.id);
const staff = people.filter((person) => !person.isRestricted).map((person) => person.id);

/** A user group of the on-call, for the bot's `usergroups.users.list`. */
export const userGroups: readonly {
  readonly id: string;
  readonly handle: string;
  readonly users: readonly string[];
}[] = [{ id: 'S0STORAGE01', handle: 'storage-oncall', users: ['U0SAM000001', 'U0LIN000001'] }];

/** Every channel, and for each person the direct message with the app. */
export const channels: readonly Channel[] = [
  { id: 'C0INCIDENTS', name: 'incidents', topic: 'Storage and cluster incidents', members: everybody },
  { id: 'C0STORAGE01', name: 'storage', topic: 'Volumes, classes, drivers', members: staff },
  { id: 'C0SHOPDEV01', name: 'shop-dev', topic: 'The shop and its database', members: everybody },
  ...people
    .filter((person) => !person.isBot)
    .map((person) => ({
      id: `D${person.id.slice(1)}`,
      name: 'directmessage',
      topic: '',
      members: [person.id, app.userId],
      with: person.id,
    })),
];

/** The person of that id, if there is one. */
export function findPerson(id: string): Person | undefined {
  return people.find((person) => person.id === id);
}

/** A channel by id, by name or by `#name`. */
export function findChannel(idOrName: string): Channel | undefined {
  const name = idOrName.replace(/^#/, '');
  return channels.find((channel) => channel.id === idOrName || (channel.with === undefined && channel.name === name));
}
