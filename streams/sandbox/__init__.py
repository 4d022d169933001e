"""Programs of agents in processes that can reach nothing: no file, network, environment, clock or chance."""
