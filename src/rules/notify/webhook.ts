import { createHash } from 'node:crypto'
import { checkOptions } from '../../protocol/check.ts'
import { checkLog } from '../../protocol/check-log.ts'
import type { EventLog } from '../../log/event-log/event-log.ts'
import { cloudEvent } from '../../log/event-log/export.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import { secretList, signWebhook } from '../../webhooks/signature.ts'
import type { WebhookSecrets } from '../../webhooks/signature.ts'
import type { AlertEntry } from './alert-entry.ts'
import { endpointOf } from './endpoint.ts'
import type { Credentials } from './endpoint.ts'
import { deliverGrouped } from './grouped-delivery.ts'
import { GROUPED_OPTIONS, groupedSettings } from './grouped-options.ts'
import type { GroupedOptions } from './grouped-options.ts'
import { post } from './post.ts'

/** Settings of {@link notifyWebhook}. */
export interface AlertWebhookOptions extends GroupedOptions {
  /** URL to post to. Only its origin is shown in errors. */
  readonly url: string
  /** Name of the consumer in the log. Default `alert-webhook`. */
  readonly name?: string
  /** Signs each request as the service signs its webhooks (§6.1), with several secrets during a rotation. Default: no signature. */
  readonly secrets?: WebhookSecrets
  /** Credentials for the receiver. Default: the user and the password of the URL, if any. */
  readonly auth?: Credentials
}

/** Maximum number of events in a request. */
const MAX_EVENTS = 100

/**
 * Posts the alerts of a log to a webhook, as CloudEvents 1.0 in JSON. A new name begins at the end of the log.
 *
 * Without `grouping`, each event is a request with `application/cloudevents+json`, and the events of an alert follow one
 * another. With it, a request is a batch of up to 100, `application/cloudevents-batch+json`. Events that `limit` has combined are a batch
 * as well.
 *
 * A receiver gets each event at least once, and should ignore an event whose `source` and `id` it already has. Any status but 2xx is a
 * failure (§6.1): the request is sent again, with the same `webhook-id`, for `retryFor`. Then the events are dead letters, which
 * `log.deadLetters(name)` hands out again. Redirects are not followed.
 *
 * Rejects, as `done`, if the log fails.
 *
 * @throws ArgumentError at the call, for an invalid setting.
 */
export function notifyWebhook(log: EventLog, options: AlertWebhookOptions): LogJob {
  checkLog(log)
  checkOptions('options', options ?? null, [...GROUPED_OPTIONS, 'url', 'secrets', 'auth'])
  const { url, secrets, auth } = options
  const endpoint = endpointOf('url', url, auth)
  const settings = groupedSettings('alert-webhook', options)
  const signing = secrets === undefined ? [] : secretList(secrets)
  const texts = signing.map((secret) =>
    typeof secret === 'string' ? secret : Buffer.from(secret).toString('base64'),
  )
  const hidden = { ...endpoint, secrets: [...endpoint.secrets, ...texts] }
  return deliverGrouped(log, {
    settings,
    types: ['alert.firing', 'alert.resolved', 'alert.unknown', 'alert.known'],
    maxEvents: MAX_EVENTS,
    isRetryable: () => true,
    async send(entries, stop) {
      const { body, type } = bodyOf(entries, settings.grouping !== undefined)
      const id = `msg_${idOf(entries)}`
      const signed = secrets === undefined ? { 'webhook-id': id } : await signWebhook({ body, secrets, id })
      await post(hidden, { body, headers: { ...signed, 'content-type': type } }, settings, stop)
    },
  })
}

function bodyOf(
  entries: readonly AlertEntry[],
  isGrouped: boolean,
): { readonly body: string; readonly type: string } {
  const events = entries.map(cloudEvent)
  const [only] = events
  if (!isGrouped && events.length === 1) {
    return { body: JSON.stringify(only), type: 'application/cloudevents+json' }
  }
  return { body: JSON.stringify(events), type: 'application/cloudevents-batch+json' }
}

/** The same for the same events, also after a restart. */
function idOf(entries: readonly AlertEntry[]): string {
  const ids = entries.map(({ source, id, revision }) => [source, id, revision])
  return createHash('sha256').update(JSON.stringify(ids)).digest('hex')
}
