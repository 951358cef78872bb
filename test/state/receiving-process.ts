/** Receives webhooks into the inbox of a file, and tells its port. Nobody handles them. */
import { createServer } from 'node:http'
import { sqliteInbox } from '../../src/state/sqlite.ts'
import { createWebhookReceiver, nodeListener } from '../../src/webhooks/index.ts'

const [file = '', secrets = ''] = process.argv.slice(2)
const receiver = createWebhookReceiver({ secrets, inbox: sqliteInbox(file) })
const server = createServer(nodeListener(receiver))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') process.stdout.write(`${address?.port}\n`)
})
