/** Stores webhooks in the log's inbox. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import { runRole } from './role.ts'

await runRole(async (log, { webhookSecret, port }) => {
  const receiver = createWebhookReceiver({ secrets: webhookSecret, inbox: log.inbox })
  const server = createServer(nodeListener(receiver)).listen(port, '127.0.0.1')
  const failed = once(server, 'error').then(([error]) => Promise.reject(error))
  await Promise.race([once(server, 'listening'), failed])
  return {
    failed,
    async stop() {
      receiver.close()
      server.close()
      server.closeAllConnections()
    },
  }
})
