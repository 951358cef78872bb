import { checkFunction, checkInteger, checkText, checkWait } from '../../protocol/check.ts'
import type { SinkFetch } from '../../webhooks/sink/post.ts'
import { warn } from './notify-problem.ts'
import type { OnProblem } from './notify-problem.ts'

/** Settings of all notifiers that send requests. */
export interface NotifierOptions {
  /** Name of its consumer in the log. Default: see each notifier. */
  readonly name?: string
  /** Sends requests. Default `globalThis.fetch`. */
  readonly fetch?: SinkFetch
  /** Timeout of one attempt, in ms. Default 10,000. */
  readonly timeout?: number
  /** Called for each failed attempt, and for each event that cannot be notified. Default: a warning of the process, `NotifyWarning`. */
  readonly onProblem?: OnProblem
}

/** {@link NotifierOptions} with their defaults. */
export type NotifierSettings = Required<NotifierOptions>

/** The settings with their defaults. Throws an ArgumentError for an invalid one. */
export function notifierSettings(defaultName: string, options: NotifierOptions): NotifierSettings {
  const {
    name = defaultName,
    // A test may replace it later.
    fetch = (url: string, init: RequestInit) => globalThis.fetch(url, init),
    timeout = 10_000,
    onProblem = warn,
  } = options
  checkText('name', name)
  checkInteger('timeout', timeout, 1)
  checkWait('timeout', timeout)
  checkFunction('fetch', fetch)
  checkFunction('onProblem', onProblem)
  return { name, fetch, timeout, onProblem }
}
