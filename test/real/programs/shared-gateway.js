// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
// A worker that creates its gateway in the first request, or with each request over the log of the first one.
import { memoryStore, openLog } from 'rivulet/log'
import { createGateway, groupsView } from 'rivulet/gateway'

const tokens = { secret: 'a secret of at least 32 bytes for tests' }
const views = { groups: groupsView() }

let log
let shared
export default {
  async fetch(request) {
    log ??= openLog(memoryStore())
    const create = async () => createGateway({ log: await log, views, tokens })
    const { pathname } = new URL(request.url)
    try {
      if (pathname === '/own') return new Response(await (await create()).done)
      shared ??= create()
      const gateway = await shared
      if (pathname === '/token')
        return new Response(await gateway.grant({ sub: 'user_1', views: ['groups'] }))
      return await gateway(request)
    } catch (error) {
      return new Response(`${error.name}: ${error.message}`, { status: 500 })
    }
  },
}
