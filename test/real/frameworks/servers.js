// @ts-nocheck -- The packages of this folder are installed for `npm run test:real` alone.
// oxlint-disable-next-line import/no-unassigned-import -- Nest reads metadata through the global that it makes.
import 'reflect-metadata'
import { createServer } from 'node:http'
import middie from '@fastify/middie'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'

/** Servers with a gateway's listener below `/live` and a receiver's at `/hooks/research`, as users mount them in each framework. */
export const servers = {
  express({ live, hooks }) {
    const app = express()
    app.use('/live', live)
    app.post('/hooks/research', hooks)
    app.use(express.json())
    return createServer(app)
  },

  'express-router'({ live, hooks }) {
    const router = express.Router()
    router.use('/', live)
    const app = express()
    app.use('/live', router)
    app.use('/hooks', express.Router().post('/research', hooks))
    return createServer(app)
  },

  async fastify({ live, hooks }) {
    const app = fastify()
    await app.register(middie)
    app.use('/live', live)
    app.use('/hooks/research', hooks)
    await app.ready()
    return app.server
  },

  koa({ live, hooks }) {
    const app = new Koa()
    app.use(async (context, next) => {
      const { path, req, res } = context
      const listener = path.startsWith('/live/') ? live : path === '/hooks/research' ? hooks : undefined
      if (listener === undefined) return await next()
      context.respond = false
      listener(req, res)
    })
    return createServer(app.callback())
  },

  async nest({ live, hooks }) {
    // oxlint-disable-next-line typescript/no-extraneous-class -- A module of Nest.
    class App {}
    Module({})(App)
    const app = await NestFactory.create(App, new ExpressAdapter(), { bodyParser: false, logger: false })
    app.use('/live', live)
    app.use('/hooks/research', hooks)
    await app.init()
    return app.getHttpServer()
  },
}
