-- The databases of Temporal, which its setup does not create with this user.
CREATE DATABASE temporal OWNER qtype;
CREATE DATABASE temporal_visibility OWNER qtype;
