import { useSyncExternalStore } from 'react'

/** The colours of the page: `system` follows the reader's settings. */
export type Theme = 'system' | 'light' | 'dark'

const KEY = 'rivulet-theme'
const listeners = new Set<() => void>()

function isTheme(value: unknown): value is Theme {
  return value === 'system' || value === 'light' || value === 'dark'
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY)
    return isTheme(value) ? value : 'system'
  } catch {
    // Storage is forbidden.
    return 'system'
  }
}

let theme: Theme = 'system'

/** Applies the theme that the reader has chosen before. */
export function restoreTheme(): void {
  theme = stored()
  document.documentElement.dataset['theme'] = theme
}

/** Applies a theme, and keeps it for the next time. */
export function chooseTheme(chosen: Theme): void {
  theme = chosen
  document.documentElement.dataset['theme'] = chosen
  try {
    localStorage.setItem(KEY, chosen)
  } catch {
    // It holds until the page is closed.
  }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The theme that is chosen. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => theme)
}
