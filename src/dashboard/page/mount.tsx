import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { DashboardContext } from './dashboard.ts'
import type { Dashboard } from './dashboard.ts'
import { restoreTheme } from './theme.ts'

/** Renders the page into an element. */
export function mount(element: Element, dashboard: Dashboard): void {
  restoreTheme()
  createRoot(element).render(
    <StrictMode>
      <DashboardContext value={dashboard}>
        <App />
      </DashboardContext>
    </StrictMode>,
  )
}
