/** Receives webhooks into the inbox of the log in a file, and sends its port. Nothing records them. */
import { createServer } from 'node:http'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'

const [file = '', secrets = ''] = process.argv.slice(2)
const log = await openLog(sqliteStore(file))
const server = createServer(nodeListener(createWebhookReceiver({ secrets, inbox: log.inbox })))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') process.send?.(address?.port)
})
