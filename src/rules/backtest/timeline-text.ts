import { checkInteger, checkObject } from '../../protocol/check.ts'
import type { PlacedCounts } from './place-history.ts'

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

// oxlint-disable-next-line no-control-regex -- HTML has no way to write them.
const CONTROL = /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]+/g

/** Text from anywhere as HTML, cut. Without control characters, and those that change the direction of text. */
export function escaped(text: string, length = 300): string {
  const plain = text.toWellFormed().replace(CONTROL, ' ')
  const cut = plain.length > length ? `${plain.slice(0, length - 1).toWellFormed()}…` : plain
  return cut.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}

/** `2026-01-31 12:00`, with seconds if they are not 0. */
export function timeText(at: number): string {
  const text = new Date(at).toISOString()
  return `${text.slice(0, 10)} ${text.slice(11, text.slice(17, 19) === '00' ? 16 : 19)}`
}

/** A time span in its two largest units: `2d 3h`. */
export function spanText(ms: number): string {
  const units = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'm'],
    [1_000, 's'],
  ] as const
  const first = units.findIndex(([unit]) => ms >= unit)
  if (first < 0) return `${Math.round(ms)}ms`
  let left = ms
  const parts = units.slice(first, first + 2).map(([unit, name]) => {
    const count = Math.floor(left / unit)
    left -= count * unit
    return count === 0 ? '' : `${count}${name}`
  })
  return parts.filter((part) => part !== '').join(' ')
}

/** `company=Acme, monitor=mon_1`. */
export function keyText(key: Readonly<Record<string, string>>): string {
  return Object.entries(key)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ')
}

/** How the events of a history were placed, in a sentence. */
export function placedText(counts: PlacedCounts): string {
  checkObject('counts', counts)
  const { time, completion, date, unplaced } = counts
  for (const [name, count] of Object.entries({ time, completion, date, unplaced })) {
    checkInteger(`counts.${name}`, count, 0)
  }
  return `Placed by their own time: ${time}, by neighbouring completions: ${completion}, by event_date: ${date}; unplaced and left out: ${unplaced}.`
}
