// Bun.serve with its router: static responses for the constants, a handler for the resource.
const [hostname, port] = (process.argv[2] ?? '127.0.0.1:8080').split(':')

const refuse = (status: number, error: string) => Response.json({ error }, { status })

const server = Bun.serve({
	hostname,
	port: Number(port),
	development: false,
	idleTimeout: 75, // the default of 10 s would close an idle herd
	routes: {
		'/': new Response('Hello, World!'),
		'/health': new Response('ok'),
		'/version': Response.json({ server: 'bun' }),
		'/api/v1/resource/:id': {
			async POST(request) {
				const token = request.headers.get('authorization')
				if (!token || !/^bearer ./i.test(token)) return refuse(401, 'Unauthorized')
				// A number, so exact up to 2^53 - 1; greater ids are refused.
				const id = /^\d+$/.test(request.params.id) ? Number(request.params.id) : NaN
				if (!Number.isSafeInteger(id)) return refuse(400, 'Invalid id')
				let data
				try {
					data = await request.json()
				} catch {
					return refuse(400, 'Invalid body')
				}
				if (typeof data?.name !== 'string' || typeof data.active !== 'boolean')
					return refuse(422, 'Invalid body')
				const { name, active } = data
				return Response.json({ status: 'success', id, data: { name, active } })
			}
		}
	},
	fetch: () => refuse(404, 'Not Found')
})

console.log(`listening on ${server.hostname}:${server.port}`)
