import { annotationsOf } from './alert-entry.ts'
import type { AlertEntry } from './alert-entry.ts'
import { oneLine } from '../../protocol/one-line.ts'

/** Maximum number of alerts in a message: it has at most 50 blocks. */
export const MAX_ALERTS = 48

/** Maximum length of the text of a section, in characters. */
const MAX_SECTION = 3_000

/** Maximum length of one text of an alert, before it is escaped. */
const MAX_TEXT = 500

/** Maximum number of labels and annotations of an alert that are shown. */
const MAX_SHOWN = 12

/** A block of Slack's Block Kit. */
interface SectionBlock {
  readonly type: 'section'
  readonly text: { readonly type: 'mrkdwn'; readonly text: string; readonly verbatim: true }
}

/** A message of an incoming webhook. */
export interface SlackMessage {
  /** Text for notifications of a device, and for clients that show no blocks. */
  readonly text: string
  readonly blocks: readonly SectionBlock[]
}

/** The message for these alerts. */
export function slackMessage(entries: readonly AlertEntry[], link?: string): SlackMessage {
  const firing = entries.filter(({ type }) => type === 'alert.firing').length
  const names = [...new Set(entries.map(({ data }) => data.alert))]
  const counts = [
    ...(firing > 0 ? [`${firing} firing`] : []),
    ...(entries.length > firing ? [`${entries.length - firing} resolved`] : []),
  ].join(', ')
  const shown = names.slice(0, 5).map((name) => escaped(name, 100))
  const title = `${counts}: ${shown.join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`
  const heading = link === undefined ? `*${title}*` : `*${title}* <${escapedLink(link)}|rules>`
  return { text: title, blocks: [section(heading), ...entries.map((entry) => section(alertText(entry)))] }
}

function alertText(entry: AlertEntry): string {
  const { type, data } = entry
  const { alert, labels } = data
  const { summary, ...others } = 'annotations' in data ? annotationsOf(data) : {}
  const sign = type === 'alert.firing' ? ':red_circle: Firing' : ':large_green_circle: Resolved'
  const lines = [`${sign} *${escaped(alert, 100)}*${summary === undefined ? '' : ` ${escaped(summary)}`}`]
  const pairs = Object.entries(labels).filter(([name]) => name !== 'alertname')
  if (pairs.length > 0) lines.push(pairs.slice(0, MAX_SHOWN).map(pairText).join(', '))
  for (const pair of Object.entries(others).slice(0, MAX_SHOWN)) lines.push(pairText(pair))
  if ('since' in data) lines.push(`since ${escaped(data.since, 40)}`)
  return lines.join('\n')
}

function pairText([name, value]: readonly [string, string]): string {
  return `${escaped(name, 100)}: ${escaped(value)}`
}

/** With `verbatim`, Slack makes no link and no mention of a text that looks like one. */
function section(text: string): SectionBlock {
  return { type: 'section', text: { type: 'mrkdwn', text: cut(text), verbatim: true } }
}

/** Cuts a text without a part of an escaped character at its end. */
function cut(text: string): string {
  if (text.length <= MAX_SECTION) return text
  return `${text
    .slice(0, MAX_SECTION - 1)
    .replace(/&[a-z]{0,3}$/, '')
    .toWellFormed()}…`
}

/** The three characters that Slack gives a meaning: with them, a text could mention a whole channel. */
function escaped(text: string, maxLength = MAX_TEXT): string {
  return oneLine(text, maxLength).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function escapedLink(link: string): string {
  return escaped(link).replaceAll('|', '%7C')
}
