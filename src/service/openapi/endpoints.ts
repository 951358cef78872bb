import { findAllWebhooks } from './answers/find-all.ts'
import { monitorWebhooks } from './answers/monitors.ts'
import type { AnyAnswer } from './answers/kinds.ts'
import { taskRunWebhook } from './answers/tasks.ts'
import type { Endpoint } from './endpoint.ts'
import { chatEndpoints } from './endpoints/chat.ts'
import { extractEndpoints } from './endpoints/extract.ts'
import { findAllEndpoints } from './endpoints/find-all.ts'
import { memoryEndpoints } from './endpoints/memory.ts'
import { monitorEndpoints } from './endpoints/monitors.ts'
import { responseEndpoints } from './endpoints/responses.ts'
import { searchEndpoints } from './endpoints/search.ts'
import { taskGroupEndpoints } from './endpoints/task-groups.ts'
import { taskEndpoints } from './endpoints/tasks.ts'

/** Every endpoint of the service, except the endpoint of this document itself. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...searchEndpoints,
  ...extractEndpoints,
  ...taskEndpoints,
  ...taskGroupEndpoints,
  ...monitorEndpoints,
  ...findAllEndpoints,
  ...memoryEndpoints,
  ...chatEndpoints,
  ...responseEndpoints,
]

/** The bodies of webhooks, by their type (§6). */
export const WEBHOOKS: Readonly<Record<string, AnyAnswer>> = {
  'task_run.status': taskRunWebhook,
  ...monitorWebhooks,
  ...findAllWebhooks,
}
