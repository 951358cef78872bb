import { useId } from 'react'
import type { ReactNode } from 'react'
import { FiringCount } from './alerts/firing.tsx'
import { Icon } from './parts/icon.tsx'
import type { IconName } from './parts/icon.tsx'
import { hashOf } from './route.ts'
import type { Route } from './route.ts'
import { ConnectionStatus } from './status.tsx'
import { chooseTheme, useTheme } from './theme.ts'
import type { Theme } from './theme.ts'

const SECTIONS: readonly (readonly [route: Route, name: string])[] = [
  [{ section: 'overview' }, 'Overview'],
  [{ section: 'monitors' }, 'Monitors'],
  [{ section: 'groups' }, 'Groups'],
  [{ section: 'runs' }, 'Runs'],
  [{ section: 'find-alls' }, 'FindAll'],
  [{ section: 'alerts' }, 'Alerts'],
  [{ section: 'search', query: '' }, 'Search'],
  [{ section: 'log' }, 'Log'],
]

/** The name of the page, its sections, the state of the connection and the theme. */
export function Header({ section }: { readonly section: Route['section'] }): ReactNode {
  return (
    <header className="top">
      <a className="brand" href="#/">
        <svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false">
          <path d="M3 7c4-3 6 3 10 1s5-3 8-1" />
          <path d="M3 12.5c4-3 6 3 10 1s5-3 8-1" />
          <path d="M3 18c4-3 6 3 10 1s5-3 8-1" />
        </svg>
        Rivulet
      </a>
      <nav aria-label="Sections">
        <ul>
          {SECTIONS.map(([route, name]) => (
            <li key={name}>
              <a href={hashOf(route)} aria-current={route.section === section ? 'page' : undefined}>
                {name}
                {route.section === 'alerts' && <FiringCount />}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div className="top-side">
        <ConnectionStatus />
        <ThemeSwitch />
      </div>
    </header>
  )
}

const THEMES: readonly (readonly [theme: Theme, icon: IconName, name: string])[] = [
  ['system', 'screen', 'As the system'],
  ['light', 'sun', 'Light'],
  ['dark', 'moon', 'Dark'],
]

function ThemeSwitch(): ReactNode {
  const group = useId()
  const chosen = useTheme()
  return (
    <fieldset className="choice theme">
      <legend className="visually-hidden">Colours</legend>
      {THEMES.map(([theme, icon, name]) => (
        <label key={theme} title={name}>
          <input type="radio" name={group} checked={theme === chosen} onChange={() => chooseTheme(theme)} />
          <span>
            <Icon name={icon} />
            <span className="visually-hidden">{name}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}
