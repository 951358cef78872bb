import { onTestFinished } from 'vitest'
import type { ConnectOptions, Live, LiveView, ViewShape, ViewSnapshot } from 'rivulet/live'
import { connectIn } from '../../src/live/connect.ts'
import { TestPage, until } from './environment.ts'

export type Shapes = { groups: ViewShape<{ n: number }>; group: ViewShape<{ n: number }, 'group'> }

/** A connection of a page, closed when the test ends. */
export function connectTo(url: string, page: TestPage, options: Partial<ConnectOptions> = {}): Live<Shapes> {
  const live = connectIn<Shapes>({ url, getToken: () => 'token', ...options }, page)
  onTestFinished(() => live.close())
  return live
}

/** Follows a view, and keeps each snapshot. */
export function follow<Row>(view: LiveView<Row>): { snapshots: ViewSnapshot<Row>[]; end: () => void } {
  const snapshots: ViewSnapshot<Row>[] = []
  return { snapshots, end: view.subscribe((snapshot) => void snapshots.push(snapshot)) }
}

/** Lets time pass on these pages, 1 ms a turn, until it is so. */
export function soon(pages: TestPage | readonly TestPage[], condition: () => boolean): Promise<void> {
  const all = pages instanceof TestPage ? [pages] : pages
  return until(condition, () => {
    for (const page of all) page.advance(1)
  })
}

/** A token as a gateway signs it, of a subject with some rights. */
export function tokenOf(sub: string, more: Readonly<Record<string, unknown>> = {}): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { sub, views: ['groups', 'group'], ...more, jti: crypto.randomUUID(), exp: 4_000_000_000 }
  return `${encode({ alg: 'HS256' })}.${encode(claims)}.signature`
}

/** The rows of a view as an object. */
export function rowsOf<Row>(view: LiveView<Row>): Record<string, Row> {
  return Object.fromEntries(view.getSnapshot().rows)
}
