import { connect } from 'rivulet/live'
import type { DashboardViews } from '../views.ts'
import { LogStatus } from './log-status.ts'
import { mount } from './mount.tsx'
import { Server } from './server.ts'

const root = document.querySelector('#root')
if (root === null) throw new Error('The page has no #root.')
const server = new Server()
mount(root, {
  live: connect<DashboardViews>({ url: '/live', getToken: server.fetchToken }),
  fetchDocument: server.fetchDocument,
  logStatus: new LogStatus(server.fetchStatus),
  access: server,
})
