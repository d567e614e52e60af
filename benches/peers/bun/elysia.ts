// Bun + Elysia, with its own schema checks.
import { Elysia, t } from 'elysia'

const [hostname, port] = (process.argv[2] ?? '127.0.0.1:8080').split(':')

// The default idle time of 10 s would close an idle herd.
new Elysia({ serve: { idleTimeout: 75 } })
	.get('/', 'Hello, World!')
	.get('/health', 'ok')
	.get('/version', { server: 'elysia' })
	.post(
		'/api/v1/resource/:id',
		({ params: { id }, body }) => ({ status: 'success', id, data: body }),
		{
			// Before the checks below, so that a stranger learns nothing from them.
			transform({ headers: { authorization }, status }) {
				if (!authorization || !/^bearer ./i.test(authorization))
					throw status(401, { error: 'Unauthorized' })
			},
			// A number, so exact up to 2^53 - 1; greater ids are refused.
			params: t.Object({
				id: t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
			}),
			body: t.Object({ name: t.String(), active: t.Boolean() })
		}
	)
	.listen({ hostname, port: Number(port) }, (server) =>
		console.log(`listening on ${server.hostname}:${server.port}`)
	)
