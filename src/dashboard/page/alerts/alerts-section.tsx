import type { ReactNode } from 'react'
import { formats } from '../parts/format.ts'
import { Notice } from '../parts/notice.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import { AlertList, useAlerts } from './alert-list.tsx'
import type { ShownAlert } from './alerts.ts'

const SECTIONS = [
  ['firing', 'Firing'],
  ['pending', 'Pending'],
  ['unknown', 'Unknown'],
  ['resolved', 'Resolved in the last 24 hours'],
] as const satisfies readonly (readonly [ShownAlert['state'], string])[]

/** The alerts of rules over the log. */
export function AlertsSection(): ReactNode {
  const { snapshot, alerts } = useAlerts()
  const instead = useInstead(snapshot, 'alerts')
  const isQuiet = SECTIONS.every(([state]) => alerts[state].length === 0)
  return (
    <div className="column">
      <h1 tabIndex={-1}>Alerts</h1>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          {isQuiet && (
            <Notice
              icon="bell"
              title={snapshot.rows.size === 0 ? 'No rule has had an alert' : 'All is quiet'}
            >
              <p>
                {snapshot.rows.size === 0 ? (
                  <>
                    Run rules with <code>rivulet rules run</code>; their alerts appear here.
                  </>
                ) : (
                  'No alert is pending or firing, and none was in the last 24 hours.'
                )}
              </p>
            </Notice>
          )}
          {SECTIONS.filter(([state]) => alerts[state].length > 0).map(([state, title]) => (
            <section key={state} className="panel" aria-labelledby={`alerts-${state}`}>
              <header className="panel-header">
                <h2 id={`alerts-${state}`}>
                  {title} <span className="muted">{formats.number(alerts[state].length)}</span>
                </h2>
              </header>
              <AlertList alerts={alerts[state]} />
            </section>
          ))}
        </>
      )}
    </div>
  )
}
