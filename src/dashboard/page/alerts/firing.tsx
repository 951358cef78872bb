import type { ReactNode } from 'react'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'

/** The number of alerts that fire. A component that shows it renders again only when the number changes. */
function useFiring(): number {
  const { live } = useDashboard()
  return useView(live.view('alerts'), ({ rows }) => {
    let firing = 0
    for (const { state } of rows.values()) if (state === 'firing') firing += 1
    return firing
  })
}

/** The number of firing alerts beside the name of their section. */
export function FiringCount(): ReactNode {
  const firing = useFiring()
  if (firing === 0) return null
  return (
    <span className="pip">
      {firing > 99 ? '99+' : firing}
      <span className="visually-hidden"> firing</span>
    </span>
  )
}

/** Announces to screen readers when another number of alerts fires. */
export function FiringAnnouncement(): ReactNode {
  const firing = useFiring()
  return (
    <p className="visually-hidden" role="status">
      {firing > 0 && `${firing} ${firing === 1 ? 'alert is' : 'alerts are'} firing`}
    </p>
  )
}
