import type { ReactNode } from 'react'

/** Characters that a browser does not show, or that show others in another order: controls, separators, and marks of direction. */
const UNSHOWN =
  // oxlint-disable-next-line no-control-regex -- These are the characters to find.
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g

/**
 * Makes a text from elsewhere visible: escapes such as `\u202e` replace characters that hide or reorder others. A service may send null
 * instead of a text, which is shown as nothing, or another value, which is shown as JSON.
 */
export function visible(value: unknown): string {
  const text = typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)
  return text.replace(UNSHOWN, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Such a text in a line. It has its own direction, which does not change the direction of the text around it. */
export function Foreign({
  className,
  children,
}: {
  readonly className?: string | undefined
  readonly children: string
}): ReactNode {
  return <bdi className={className}>{visible(children)}</bdi>
}
