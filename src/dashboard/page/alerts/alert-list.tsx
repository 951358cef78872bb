import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { Badge } from '../parts/badge.tsx'
import type { Tone } from '../parts/badge.tsx'
import { formats, words } from '../parts/format.ts'
import type { IconName } from '../parts/icon.tsx'
import { useMore } from '../parts/more.tsx'
import { Elapsed, RelativeTime, useNow } from '../parts/time.tsx'
import { alertsByState } from './alerts.ts'
import type { ShownAlert } from './alerts.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

const LOOKS: Readonly<Record<ShownAlert['state'], readonly [tone: Tone, icon: IconName]>> = {
  firing: ['bad', 'bell'],
  pending: ['warn', 'clock'],
  unknown: ['quiet', 'question'],
  resolved: ['good', 'check'],
}

/** Texts for the reason why an alert is over, or why its state is unknown. */
const REASONS: Readonly<Record<string, string>> = {
  condition: 'Its condition does not hold any more.',
  expired: 'It held for as long as its rule says.',
  cancelled: 'Its monitor was cancelled.',
  rule: 'Its rule was removed, disabled or changed.',
  lost: 'Its source cannot be reached.',
  gap: 'Events are missing.',
  incomplete: 'Events are still to come, and it was waited for them as long as possible.',
  keys: 'Its rule has too many keys.',
}

/** Alerts by state. */
export function useAlerts() {
  const { live } = useDashboard()
  const snapshot = useView(live.view('alerts'))
  const now = useNow()
  const alerts = useMemo(() => alertsByState(snapshot.rows, now), [snapshot.rows, now])
  return { snapshot, alerts }
}

/** Alerts of one state. */
export function AlertList({
  alerts,
  limit = 50,
}: {
  readonly alerts: readonly ShownAlert[]
  readonly limit?: number
}): ReactNode {
  const { shown, more } = useMore(alerts, limit)
  return (
    <>
      <ul className="rows">
        {shown.map((alert) => (
          <AlertItem key={alert.id} alert={alert} />
        ))}
      </ul>
      {more}
    </>
  )
}

function AlertItem({ alert }: { readonly alert: ShownAlert }): ReactNode {
  const { state, name, labels, summary, description, value, since, until, reason, isComplete } = alert
  const [tone, icon] = LOOKS[state]
  return (
    <li className="alert">
      <span className="alert-state">
        <Badge tone={tone} icon={icon}>
          {state}
        </Badge>
      </span>
      <div className="alert-text">
        <p className="alert-name">
          <Foreign>{name}</Foreign>
        </p>
        {summary !== undefined && (
          <p className="alert-summary" dir="auto">
            {visible(summary)}
          </p>
        )}
        {description !== undefined && (
          <p className="muted small" dir="auto">
            {visible(description)}
          </p>
        )}
        {labels.length > 0 && (
          <ul className="labels" aria-label="Labels">
            {labels.map(([label, text]) => (
              <li key={label}>
                <Foreign className="label-name">{label}</Foreign> <Foreign>{text}</Foreign>
              </li>
            ))}
          </ul>
        )}
        {reason !== undefined && <p className="muted small">{REASONS[reason] ?? visible(words(reason))}</p>}
        {!isComplete && <p className="muted small">Its rule did not have all events when it began.</p>}
      </div>
      <div className="alert-side">
        {value !== null && (
          <span className="alert-value">
            <span className="muted small">value </span>
            {typeof value === 'number' ? formats.number(value) : <Foreign>{value}</Foreign>}
          </span>
        )}
        <span className="muted small">
          {until !== undefined ? (
            <RelativeTime at={until} />
          ) : (
            since !== undefined && (
              <>
                for <Elapsed since={since} />
              </>
            )
          )}
        </span>
      </div>
    </li>
  )
}
