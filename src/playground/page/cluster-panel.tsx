import { type ReactElement, useState } from 'react';
import type { ClusterRow } from '../slack/cluster-rows.ts';
import { Icon } from './icons.tsx';

const titles: Readonly<Record<string, string>> = {
  Node: 'Nodes',
  Pod: 'Pods',
  PersistentVolumeClaim: 'Claims',
  PersistentVolume: 'Volumes',
  VolumeAttachment: 'Attachments',
  BackendVolume: 'Backend volumes',
};

/** Shows the cluster as it changes: what is wrong stands out, what has just changed flashes. */
export function ClusterPanel({
  rows,
  close,
  fireAlerts,
}: {
  readonly rows: readonly ClusterRow[];
  readonly close: () => void;
  /** Sends the alerts of what is wrong now; what recovers ends its alert by itself. */
  readonly fireAlerts?: () => void;
}): ReactElement {
  // What was there when the panel opened has not just changed.
  const [first] = useState(() => new Set(rows.map(contentOf)));
  return (
    <aside className="cluster" aria-label="Cluster">
      <header>
        <Icon name="cluster" />
        <h2>Cluster</h2>
        {fireAlerts !== undefined && (
          <button
            type="button"
            className="button"
            title="Sends what Alertmanager would; alerts end by themselves when the cluster recovers"
            onClick={fireAlerts}
          >
            Fire alerts
          </button>
        )}
        <button type="button" className="icon-button" aria-label="Hide panel" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll container without focusable parts could not be scrolled */}
      <div className="cluster-body" tabIndex={0}>
        {Object.entries(titles).map(([kind, title]) => {
          const own = rows.filter((row) => row.kind === kind);
          return (
            <details key={kind} open>
              <summary>
                <Icon name="chevron" size={16} /> {title} <small>{own.length}</small>
              </summary>
              {own.length === 0 && <p className="quiet">none</p>}
              <ul>
                {own.map((row) => (
                  // The key holds the content, so that a changed row is a new element and its flash runs again.
                  <li key={contentOf(row)} className={first.has(contentOf(row)) ? 'row' : 'row changed'}>
                    <span className="row-name" title={row.name}>
                      {row.namespace !== '' && <small>{row.namespace}/</small>}
                      {row.name}
                    </span>
                    <span className="chips">
                      {row.chips.map((chip) => (
                        <span key={chip.text} className={`chip ${chip.tone}`}>
                          {chip.text}
                        </span>
                      ))}
                    </span>
                    <span className="detail" title={row.detail}>
                      {row.detail}
                    </span>
                  </li>
                ))}
              </ul>
            </details>
          );
        })}
      </div>
    </aside>
  );
}

function contentOf(row: ClusterRow): string {
  return `${row.key} ${row.detail} ${row.chips.map((chip) => chip.text).join()}`;
}
