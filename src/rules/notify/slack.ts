import { checkOptions, checkText } from '../../protocol/check.ts'
import { checkLog } from '../../protocol/check-log.ts'
import type { EventLog } from '../../log/event-log/event-log.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import { endpointOf } from '../../webhooks/sink/endpoint.ts'
import { post } from '../../webhooks/sink/post.ts'
import { SinkError } from '../../webhooks/sink/sink-error.ts'
import { deliverGrouped } from './grouped-delivery.ts'
import { GROUPED_OPTIONS, groupedSettings } from './grouped-options.ts'
import type { GroupedOptions } from './grouped-options.ts'
import { MAX_ALERTS, slackMessage } from './slack-message.ts'

/** Settings of {@link notifySlack}. */
export interface SlackOptions extends GroupedOptions {
  /** URL of the incoming webhook. It is a secret: errors show only its origin. */
  readonly url: string
  /** Name of the consumer in the log. Default `slack`. */
  readonly name?: string
  /** URL at which a person finds the rules; the title of a message links to it. Default: no link. */
  readonly link?: string
}

/**
 * Posts the alerts of a log to an incoming webhook of Slack, or of a service that takes the same messages. A new name begins at the end of
 * the log.
 *
 * A message has the alerts of a group that fire or have ended, up to 48. By default alerts of one name are a group, which waits 5 s and
 * is notified at most once a minute. Text of an alert is escaped, so that it has neither a mention nor a link.
 *
 * An alert may be in two messages, after a restart for instance. After 429 the next attempt is after `Retry-After`. If Slack refuses a
 * message for its content, its alerts are sent again one by one, and each that is refused again is a dead letter of the consumer.
 *
 * Rejects, as `done`, if the log fails.
 *
 * @throws ArgumentError at the call, for an invalid setting.
 */
export function notifySlack(log: EventLog, options: SlackOptions): LogJob {
  checkLog(log)
  checkOptions('options', options ?? null, [...GROUPED_OPTIONS, 'url', 'link'])
  const { url, link } = options
  const endpoint = endpointOf('url', url)
  const settings = groupedSettings('slack', options, {})
  if (link !== undefined) checkText('link', link)
  return deliverGrouped(log, {
    settings,
    types: ['alert.firing', 'alert.resolved'],
    maxEvents: MAX_ALERTS,
    isRetryable: (error) => !isRefusal(error),
    async send(entries, stop) {
      const body = JSON.stringify(slackMessage(entries, link))
      await post(endpoint, { body, headers: { 'content-type': 'application/json' } }, settings, stop)
    },
  })
}

/** Statuses that concern the content of a message. */
const REFUSED = new Set([400, 413, 422])

function isRefusal(error: unknown): boolean {
  return error instanceof SinkError && error.status !== undefined && REFUSED.has(error.status)
}
