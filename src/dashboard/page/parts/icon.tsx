import type { ReactNode } from 'react'

/** Paths in a square of 16. */
const ICONS = {
  check: <path d="M3.5 8.5l3 3 6-7" />,
  cross: <path d="M4.5 4.5l7 7m0-7l-7 7" />,
  clock: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 5v3.2l2 1.3" />
    </>
  ),
  run: (
    <>
      <path d="M13.5 8A5.5 5.5 0 1 1 8 2.5" />
      <circle cx="8" cy="8" r="1.2" />
    </>
  ),
  bell: (
    <path d="M8 2.5a3.6 3.6 0 0 0-3.6 3.6c0 3.4-1.4 4.4-1.4 4.4h10s-1.4-1-1.4-4.4A3.6 3.6 0 0 0 8 2.5zM6.8 13a1.3 1.3 0 0 0 2.4 0" />
  ),
  question: (
    <>
      <path d="M5.7 6a2.3 2.3 0 1 1 3.4 2c-.8.5-1.1.9-1.1 1.7" />
      <circle cx="8" cy="12.2" r=".4" />
    </>
  ),
  pulse: <path d="M1.5 8.5h3l2-5 3 9 2-4h3" />,
  off: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M4.2 4.2l7.6 7.6" />
    </>
  ),
  pause: <path d="M5.8 4v8M10.2 4v8" />,
  sun: (
    <>
      <circle cx="8" cy="8" r="2.8" />
      <path d="M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M12.6 3.4l-1.1 1.1M4.5 11.5l-1.1 1.1" />
    </>
  ),
  moon: <path d="M13 9.6A5.6 5.6 0 0 1 6.4 3a5.6 5.6 0 1 0 6.6 6.6z" />,
  screen: (
    <>
      <rect x="2" y="3" width="12" height="8.2" rx="1" />
      <path d="M5.5 13.8h5" />
    </>
  ),
  quote: <path d="M6.5 4.5C4.5 5.3 3.5 6.8 3.5 9v2.5h3V8.5H5M13 4.5c-2 .8-3 2.3-3 4.5v2.5h3V8.5h-1.5" />,
  out: <path d="M6 3.5H3.5v9h9V10M9 3h4v4M13 3L7.5 8.5" />,
  chevron: <path d="M6 4l4 4-4 4" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4" />
      <path d="M10 10l3.5 3.5" />
    </>
  ),
} satisfies Record<string, ReactNode>

/** The name of an icon. */
export type IconName = keyof typeof ICONS

/** A drawing beside a text with the same meaning, so it is hidden from screen readers. */
export function Icon({ name }: { readonly name: IconName }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      {ICONS[name]}
    </svg>
  )
}
